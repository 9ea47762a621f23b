"""Signing in at a provider of OpenID Connect: the authorization code flow with PKCE, and nothing else of it."""
