"""What comes over HTTP: who is asking, what travels, the JSON API, and the server."""
