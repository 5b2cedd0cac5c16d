"""Notebooks: each cell is a document, and its notebook knows their order."""

from lsprotocol import types as lsp

from mercury_ls.lsp.server import Server, change_of


def did_open(ls: Server, params: lsp.DidOpenNotebookDocumentParams) -> None:
    notebook = params.notebook_document
    ls.started.files.notebooks[notebook.uri] = [cell.document for cell in notebook.cells]
    for cell in params.cell_text_documents:
        ls.opened(cell.uri, cell.language_id, cell.version, cell.text)


def did_change(ls: Server, params: lsp.DidChangeNotebookDocumentParams) -> None:
    cells = params.change.cells
    if cells is None:
        return
    if structure := cells.structure:
        order = ls.started.files.notebooks.setdefault(params.notebook_document.uri, [])
        array = structure.array
        order[array.start : array.start + array.delete_count] = [c.document for c in array.cells or []]
        for closed in structure.did_close or []:
            ls.started.close(closed.uri)
        for cell in structure.did_open or []:
            ls.opened(cell.uri, cell.language_id, cell.version, cell.text)
    for content in cells.text_content or []:
        changes = [change_of(change) for change in content.changes]
        ls.started.change(content.document.uri, content.document.version, changes, ls.encoding)


def did_close(ls: Server, params: lsp.DidCloseNotebookDocumentParams) -> None:
    ls.started.files.notebooks.pop(params.notebook_document.uri, None)
    for cell in params.cell_text_documents:
        ls.started.close(cell.uri)
