"""The ASGI application: bodies are counted while they are read, then Django."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.core.asgi import get_asgi_application

from config.bodies import counted

application = counted(get_asgi_application())
