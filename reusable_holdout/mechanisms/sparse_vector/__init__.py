"""The sparse vector technique: answers about queries below a threshold are free, those above it cost a charge."""
