"""What a dashboard can be told when it is made."""

from dataclasses import dataclass, field
from datetime import timedelta

from horsies.web.access import Authenticate, local_viewers, networks_of


@dataclass(frozen=True, slots=True)
class WebOptions:
    """How a dashboard behaves; by default this machine's own users look, and nobody else.

    `allowed_hosts` are the names that the Host header may have besides addresses and localhost;
    `*` allows every name, for apps whose server checks it. `trusted_proxies` are the addresses or
    networks of proxies whose `X-Forwarded-Proto` is believed, so that cookies of pages that came
    through TLS are never sent without it. `hide_arguments` are patterns of
    argument names, such as `*password*`; `*` hides all. `hide_results` hides what tasks return.
    """

    authenticate: Authenticate = local_viewers
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    tick_rate: float = 4.0
    hide_arguments: tuple[str, ...] = field(
        default=("*password*", "*passwd*", "*secret*", "*token*", "*api_key*", "*credential*")
    )
    hide_results: bool = False

    def __post_init__(self) -> None:
        if not 0.1 <= self.tick_rate <= 20:
            raise ValueError(f"tick_rate is 0.1 to 20 refreshes per second, not {self.tick_rate}")
        networks_of(self.trusted_proxies)

    @property
    def tick(self) -> timedelta:
        """How long what was read counts as new."""
        return timedelta(seconds=1 / self.tick_rate)
