import pytest

from mercury_ls.code.stdlib_names import statement


@pytest.mark.parametrize(
    ("name", "suffix", "text", "expected"),
    [
        ("Optional", ".py", "def f() -> Optional[int]: ...", "from typing import Optional"),
        ("json", ".py", "json.dumps(1)", "import json"),
        ("json", ".py", "json = 1", ""),
        ("rows", ".py", "rows.read()", ""),
        ("filepath", ".go", "filepath.Join(a, b)", 'import "path/filepath"'),
        ("url", ".go", "url.host", ""),
        ("rand", ".go", "rand.Int()", ""),
        ("HashMap", ".rs", "HashMap::new()", "use std::collections::HashMap;"),
        ("List", ".java", "List<String> rows;", "import java.util.List;"),
        ("strlen", ".c", "strlen(name)", "#include <string.h>"),
        ("vector", ".cpp", "std::vector<int> rows;", "#include <vector>"),
        ("vector", ".cpp", "vector rows;", ""),
        ("readFile", ".ts", "readFile(path)", ""),
    ],
)
def test_a_well_known_name_has_one_import(name, suffix, text, expected):
    assert statement(name, suffix, text) == expected
