"""The console's own lists over the API: one router for each noun."""
