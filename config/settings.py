"""Django's settings: wiring only, every value typed in config/environment.py."""

from pathlib import Path
from typing import Any

from config import pool
from config.environment import Environment, database_settings

ENVIRONMENT = Environment()
BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = ENVIRONMENT.secret_key
DEBUG = ENVIRONMENT.debug
ALLOWED_HOSTS = ENVIRONMENT.allowed_hosts.split(",")
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "pgtrigger",
    "ninja",
    "ledger",
    "executors",
    "recovery",
    "notifications",
    "dashboard",
    "standalone",
    "sandbox",
    "bench",
    "drills",
    "demo",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "config.middleware.request_id",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "dashboard.logins.bounds",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "dashboard.context.console",
            ]
        },
    }
]

CONNECTION: dict[str, Any] = {
    "connect_timeout": 3,
    "tcp_user_timeout": 10000,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    # Parameters travel apart. The hot statements are prepared by `ledger/pipelines.py`, and only
    # by it: psycopg would forget all prepared ones of a connection at each rollback.
    "server_side_binding": True,
    # A plan made while the tables were empty is kept: it must be one by index, and with the
    # default cost of a random page, a disk's, the planner would read whole tables.
    "options": (
        "-c statement_timeout=15s -c lock_timeout=3s -c idle_in_transaction_session_timeout=10s "
        "-c random_page_cost=1.1"
    ),
}
DATABASES = {
    "default": pool.apply(
        {
            **database_settings(ENVIRONMENT.database_url),
            "CONN_HEALTH_CHECKS": True,
            "ATOMIC_REQUESTS": False,
            "OPTIONS": CONNECTION,
        },
        pooled=ENVIRONMENT.database_pool,
    )
}

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"

PRODUCTION = ENVIRONMENT.env == "production"
SESSION_COOKIE_AGE = int(ENVIRONMENT.login_s)
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = PRODUCTION
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]  # asked from inside, without TLS
SESSION_COOKIE_NAME = "__Host-login" if PRODUCTION else "clearhouse_login"
CSRF_FAILURE_VIEW = "config.problems.csrf_failure"
SECURE_HSTS_SECONDS = 31536000 if PRODUCTION else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = PRODUCTION
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PRODUCTION else None
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 12 * 1024 * 1024
# A chosen file stays in memory: what is repaired without being stored is on no disk either.
FILE_UPLOAD_MAX_MEMORY_SIZE = DATA_UPLOAD_MAX_MEMORY_SIZE
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}

# Executors report to recovery through this, because nothing calls upwards.
RECOVERY_REPORTS = "recovery.reports"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {"httpx2": {"level": "WARNING"}, "django.request": {"level": "ERROR"}},
}
