"""Parts of examples/hill_climbing_agent.py: worlds to climb in, and ways to be judged."""
