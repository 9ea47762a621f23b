"""What people and programs meet over HTTP: pages and a JSON API, beside the service or in a process of its own."""
