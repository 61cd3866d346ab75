"""The strict policy that our pages promise to obey: Django's own middleware where there is one, else this."""

POLICY = "default-src 'self'"


class Policy:
    """Sets the header as ContentSecurityPolicyMiddleware does, for versions of Django without it."""

    def __init__(self, get_response):
        self._get_response = get_response

    def __call__(self, request):
        response = self._get_response(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response
