"""Probes and lifecycle hooks: which action is taken, how often, and what it may be."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.container import (
    ExecAction,
    GRPCAction,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    Probe,
    SleepAction,
    TCPSocketAction,
)
from nodeward.api.core_v1.pod import PodOS
from nodeward.base.fielderror import FieldError, forbidden, invalid, not_supported, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import http_header_name, port_name, port_number
from nodeward.validation.checks import Fields, check_not_negative, check_positive

_SCHEMES: Final = ("HTTP", "HTTPS")
_PROTOCOLS: Final = ("HTTP1", "HTTP2")
_GRPC_MODES: Final = ("Plaintext", "TLS")
_WINDOWS_SIGNALS: Final = ("SIGKILL", "SIGTERM")
_NAMED_SIGNALS: Final = (
    "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO",
    "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGSEGV", "SIGSTKFLT", "SIGSTOP",
    "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM",
    "SIGWINCH", "SIGXCPU", "SIGXFSZ", "SIGRTMIN", "SIGRTMAX",
)  # fmt: skip
_LINUX_SIGNALS: Final = tuple(
    sorted(
        (
            *_NAMED_SIGNALS,
            *(f"SIGRTMIN+{n}" for n in range(1, 16)),
            *(f"SIGRTMAX-{n}" for n in range(1, 15)),
        )
    )
)
_ONE_HANDLER: Final = "may not specify more than 1 handler type"

_Action = ExecAction | HTTPGetAction | TCPSocketAction | GRPCAction | SleepAction


def validate_liveness_probe(probe: Probe, grace: int | None, path: FieldPath) -> list[FieldError]:
    """Liveness and startup probes: one success is enough, more makes no sense."""
    errors = _probe(probe, grace, path)
    if probe.success_threshold != 1:
        errors.append(invalid(path.child("successThreshold"), probe.success_threshold, "must be 1"))
    return errors


def validate_readiness_probe(probe: Probe, grace: int | None, path: FieldPath) -> list[FieldError]:
    errors = _probe(probe, grace, path)
    if probe.termination_grace_period_seconds is not None:
        at = path.child("terminationGracePeriodSeconds")
        detail = "must not be set for readinessProbes"
        errors.append(invalid(at, probe.termination_grace_period_seconds, detail))
    return errors


_COUNTS: Final = Fields(
    Probe,
    initial_delay_seconds=check_not_negative,
    timeout_seconds=check_not_negative,
    period_seconds=check_not_negative,
    success_threshold=check_not_negative,
    failure_threshold=check_not_negative,
)


def _probe(probe: Probe, grace: int | None, path: FieldPath) -> list[FieldError]:
    actions: tuple[tuple[str, _Action | None], ...] = (
        ("exec", probe.exec),
        ("httpGet", probe.http_get),
        ("tcpSocket", probe.tcp_socket),
        ("grpc", probe.grpc),
    )
    errors = _handler(actions, grace, path)
    if (
        probe.initial_delay_seconds < 0
        or probe.timeout_seconds < 0
        or probe.period_seconds < 0
        or probe.success_threshold < 0
        or probe.failure_threshold < 0
    ):
        errors += _COUNTS(probe, path)
    seconds = probe.termination_grace_period_seconds
    if seconds is not None:
        errors += check_positive(seconds, path.child("terminationGracePeriodSeconds"))
    return errors


def validate_lifecycle(
    lifecycle: Lifecycle, grace: int | None, os: PodOS | None, path: FieldPath
) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, hook in (("postStart", lifecycle.post_start), ("preStop", lifecycle.pre_stop)):
        if hook is not None:
            errors += _handler(_hook_actions(hook), grace, path.child(name))
    if lifecycle.stop_signal is not None:
        errors += _stop_signal(lifecycle.stop_signal, os, path.child("stopSignal"))
    return errors


def _hook_actions(hook: LifecycleHandler) -> tuple[tuple[str, _Action | None], ...]:
    return (
        ("exec", hook.exec),
        ("httpGet", hook.http_get),
        ("tcpSocket", hook.tcp_socket),
        ("sleep", hook.sleep),
    )


def _handler(
    actions: tuple[tuple[str, _Action | None], ...], grace: int | None, path: FieldPath
) -> list[FieldError]:
    errors: list[FieldError] = []
    is_first = True
    for name, action in actions:
        if action is None:
            continue
        if is_first:
            errors += _action(action, grace, path.child(name))
            is_first = False
        else:
            errors.append(forbidden(path.child(name), _ONE_HANDLER))
    if is_first:
        errors.append(required(path, "must specify a handler type"))
    return errors


def _action(action: _Action, grace: int | None, path: FieldPath) -> list[FieldError]:
    match action:
        case ExecAction():
            return [] if action.command else [required(path.child("command"))]
        case HTTPGetAction():
            return _http_get(action, path)
        case TCPSocketAction():
            return validate_port(action.port, path.child("port"))
        case GRPCAction():
            errors = validate_port(action.port, path.child("port"))
            if action.mode is not None and action.mode not in _GRPC_MODES:
                errors.append(not_supported(path.child("mode"), action.mode, _GRPC_MODES))
            return errors
        case SleepAction():
            if grace is None or 0 <= action.seconds <= grace:
                return []
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            return [invalid(path, action.seconds, detail)]


def _http_get(action: HTTPGetAction, path: FieldPath) -> list[FieldError]:
    errors = [] if action.path else [required(path.child("path"))]
    errors += validate_port(action.port, path.child("port"))
    if action.scheme not in _SCHEMES:
        errors.append(not_supported(path.child("scheme"), action.scheme, _SCHEMES))
    for header in action.http_headers:
        errors += [invalid(path.child("httpHeaders"), header.name, f) for f in http_header_name(header.name)]
    if action.protocol is not None:
        at = path.child("protocol")
        if action.protocol not in _PROTOCOLS:
            errors.append(not_supported(at, action.protocol, _PROTOCOLS))
        elif action.protocol == "HTTP2" and action.scheme != "HTTP":
            errors.append(invalid(at, action.protocol, "is only supported with HTTP (H2C)"))
        elif action.protocol == "HTTP2" and action.host:
            errors.append(
                invalid(path.child("host"), action.host, 'must be empty when `protocol` is "HTTP2"')
            )
    return errors


def validate_port(port: int | str, path: FieldPath) -> list[FieldError]:
    """A port by number or by name."""
    faults = port_name(port) if isinstance(port, str) else port_number(port)
    return [invalid(path, port, fault) for fault in faults]


def _stop_signal(signal: str, os: PodOS | None, path: FieldPath) -> list[FieldError]:
    if os is None:
        return [forbidden(path, "may not be set for containers with empty `spec.os.name`")]
    if os.name == "windows":
        supported: tuple[str, ...] = _WINDOWS_SIGNALS
    elif os.name == "linux":
        supported = _LINUX_SIGNALS
    else:
        return []
    return [] if signal in supported else [not_supported(path, signal, supported)]
