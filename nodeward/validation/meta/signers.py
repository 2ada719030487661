"""Names of certificate signers and of the trust bundles that belong to them."""

from __future__ import annotations

from nodeward.base.fielderror import FieldError, invalid, quote, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import (
    DNS_LABEL_LIMIT,
    DNS_SUBDOMAIN_LIMIT,
    dns_label,
    dns_subdomain,
)
from nodeward.validation.checks import check_size


def is_kubernetes_signer(name: str) -> bool:
    host = name.partition("/")[0]
    return host == "kubernetes.io" or host.endswith(".kubernetes.io")


def validate_signer_name(name: str, path: FieldPath) -> list[FieldError]:
    """`example.com/signer-name`, both sides dotted names."""
    if not name:
        return [required(path)]
    parts = name.split("/")
    if len(parts) != 2:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, detail)]
    domain, rest = parts
    errors = check_size(domain, path, DNS_SUBDOMAIN_LIMIT)
    labels = domain.split(".")
    for label in labels:
        if faults := dns_label(label):
            errors += [invalid(path, domain, f"validating label {quote(label)}: {fault}") for fault in faults]
            break
    if len(labels) < 2:
        detail = "should be a domain with at least two segments separated by dots"
        errors.append(invalid(path, domain, detail))
    for label in rest.split("."):
        if faults := dns_subdomain(label):
            errors += [invalid(path, rest, f"validating label {quote(label)}: {fault}") for fault in faults]
            break
    longest = DNS_SUBDOMAIN_LIMIT + (DNS_SUBDOMAIN_LIMIT + DNS_LABEL_LIMIT + 1) + 1
    return errors + check_size(name, path, longest)


def trust_bundle_name(name: str) -> list[str]:
    """A ClusterTrustBundle's name: with a signer it starts with the signer's, `/` written as `:`."""
    prefix, colon, rest = name.rpartition(":")
    if not colon:
        return dns_subdomain(name)
    if not prefix:
        return ['ClusterTrustBundle without signer name must not have ":" in its name']
    if "/" in prefix:
        signer, expected = prefix.replace(":", "/"), prefix.replace("/", ":") + ":"
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {expected}"]
    return dns_subdomain(rest)
