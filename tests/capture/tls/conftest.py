import pytest

from tests import tls_traffic


@pytest.fixture(scope="session")
def pem(tmp_path_factory):
    return tls_traffic.certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls(pem, tmp_path):
    """Begins a conversation inside TLS; its key log is `tls.keys` of the test's folder."""

    def talk(version="1.3", ciphers=None, **given):
        return tls_traffic.TlsTalk(pem, given.pop("key_log", tmp_path / "tls.keys"), version, ciphers, **given)

    return talk
