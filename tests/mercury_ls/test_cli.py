import pytest

from mercury_ls.cli import main


@pytest.mark.parametrize("kind", ["--tcp", "--ws"])
@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.0.2.1:9", "[::]:0"])
def test_other_machines_are_not_let_in(kind, address, capsys):
    with pytest.raises(SystemExit) as ended:
        main([kind, address])
    assert ended.value.code == 1
    assert "can be reached from other machines" in capsys.readouterr().err
