"""The sparse vector technique: free answers below a threshold, charges above it."""
