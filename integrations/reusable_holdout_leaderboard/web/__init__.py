"""The HTTP server: connections, requests, and the JSON API."""
