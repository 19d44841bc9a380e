"""What a call to a provider can fail with.

One small tree, so that a caller writes one `except ProviderError`. Each error carries a stable slug
(the observation's `detail`, a metric label) and says whether the request may have reached the
provider: that is what decides if a create may be sent again. Messages never hold a URL's query, a
header or a body.
"""


class ProviderError(Exception):
    """No answer was got. `slug` says why; `ambiguous`: bytes of the request may have left."""

    def __init__(self, slug: str, detail: str = "", *, ambiguous: bool = False) -> None:
        super().__init__(f"{slug}: {detail}" if detail else slug)
        self.slug = slug
        self.detail = detail
        self.ambiguous = ambiguous


class ProviderUnavailableError(ProviderError):
    """The provider could not be reached, or broke off before it answered: to be tried again."""


class EgressDeniedError(ProviderError):
    """We refused to send: address, URL or header is not allowed. Nothing left this machine."""
