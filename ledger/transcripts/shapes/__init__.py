"""How each form writes a conversation down: one file for one form, asked through its profile."""
