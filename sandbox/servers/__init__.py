"""The other side of the sandbox's tools: mail, payments, renders and sign-ins on loopback."""
