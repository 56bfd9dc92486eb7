# syntax=docker/dockerfile:1
# The image of every Clearhouse service: web, workers, watchdog, notifier, migrations.
# No embedded servers, no tests, no compiler, no bootstrap; runs as an ordinary user on a
# read-only root. Dependencies stand in a layer before the code.

FROM ghcr.io/astral-sh/uv:0.13.8 AS uv

FROM python:3.13-slim AS packages
COPY --from=uv /uv /usr/local/bin/uv
ENV UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1
WORKDIR /app
COPY pyproject.toml requirements.lock ./
# The lock also names the test tools and the embedded servers. As a constraint it pins version
# and hash of every package, while pyproject.toml alone says which of them are needed here.
RUN uv venv /opt/venv \
 && uv pip install --python /opt/venv/bin/python --no-cache --require-hashes \
        -c requirements.lock -r pyproject.toml

FROM python:3.13-slim
RUN groupadd --system --gid 10001 clearhouse \
 && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent clearhouse \
 && install -d -o clearhouse -g clearhouse -m 0700 /var/lib/clearhouse
COPY --from=packages /opt/venv /opt/venv
WORKDIR /app
COPY . .
RUN /opt/venv/bin/python -m compileall -q .
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    CLEARHOUSE_BOOTSTRAP=0 \
    CLEARHOUSE_DATA=/var/lib/clearhouse \
    DJANGO_SETTINGS_MODULE=config.settings
USER 10001:10001
VOLUME ["/var/lib/clearhouse"]
EXPOSE 8000
# The entry point completes DATABASE_URL and REDIS_URL from secret files, then becomes the command.
ENTRYPOINT ["python", "-m", "standalone.container"]
CMD ["python", "-m", "uvicorn", "config.asgi:application", "--host", "0.0.0.0", "--port", "8000", \
     "--timeout-graceful-shutdown", "2", "--no-access-log"]
