"""Signing in and out. A refusal never tells which of the two was wrong (S14)."""

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView

REFUSED = (
    "This name and password belong to no login that may sign in. "
    "Check both, then try again, or ask an admin of your workspace for a new password."
)


class LoginForm(AuthenticationForm):
    """Name and password; one sentence for every refusal."""

    error_messages = {"invalid_login": REFUSED, "inactive": REFUSED}


class SignIn(LoginView):
    """The sign-in page; who has signed in already is sent on."""

    template_name = "dashboard/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True


class SignInAgain(SignIn):
    """The same for who is signed in already: a decision about a side effect wants a fresh login."""

    redirect_authenticated_user = False
