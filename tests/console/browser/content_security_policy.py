"""Sends a strict Content-Security-Policy. Django 6 has a middleware of its own for it."""

POLICY = "default-src 'self'"


class Policy:
    """Sets the header as ContentSecurityPolicyMiddleware does, for versions of Django without it."""

    def __init__(self, get_response):
        self._get_response = get_response

    def __call__(self, request):
        response = self._get_response(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response
