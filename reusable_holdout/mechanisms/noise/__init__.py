"""What a guard draws with: exact discrete Laplace noise, keyed by the question. Its draws never change."""
