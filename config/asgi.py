"""The ASGI application: quotas, then bodies, then the hot routes; the rest is Django's."""

import os
from typing import cast

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.core.asgi import get_asgi_application

_django = get_asgi_application()

from config.bodies import Application, counted
from config.fast import fast
from config.quotas import limited

application = limited(counted(fast(cast(Application, _django))))
