"""wirecheck: do all brokers and clients of a Kafka cluster agree on which topic is which?

Knows: that the rooms at the top of the repository (capture, decode, judge, streaming, dashboards, commands) are this
package's: each is linked here, so that an installed wirecheck has one name of its own at the top, whatever else is
called `decode` beside it; and that some of their modules may be compiled (extension_modules.py), which is decided
before any is imported. Refuses to know what they do.
Rule: a room is imported by this name only, `wirecheck.decode`; by its bare one it would be another module. What takes
time to find out is found out when it is asked for: a command that prints its help asks for nothing.
"""

from typing import TYPE_CHECKING, Any

from wirecheck import extension_modules

extension_modules.PLAIN = extension_modules.insisted(extension_modules.choose())

if TYPE_CHECKING:
    from wirecheck.library import InputError, changes, errors, messages, replay, why
    from wirecheck.library_values import Change, Message, Verdict

__version__: str
__all__ = ["Change", "InputError", "Message", "Verdict", "__version__", "changes", "errors", "messages", "replay", "why"]


def __getattr__(name: str) -> Any:
    """PEP 562: `__version__` is in the package's metadata, and reading those takes as long as all of `--help`."""
    if name != "__version__":
        if name in __all__:
            from wirecheck import library, library_values

            return getattr(library, name, None) or getattr(library_values, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("wirecheck")
    except PackageNotFoundError:  # a checkout that nobody installed
        return "0+unknown"


def __dir__() -> list[str]:
    """What completion offers in a notebook."""
    return sorted(__all__)
