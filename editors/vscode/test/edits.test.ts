import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Change, type Edit, accepted, endOf, follow, nearest, oneLine } from '../src/edits.ts';

/** Ranges are written as `line:character-line:character`. */
function range(text: string) {
  const [start, end] = text.split('-').map((place) => {
    const [line, character] = place.split(':').map(Number);
    return { line, character };
  });
  return { start, end: end ?? start };
}

function edit(place: string, removed: string, text: string): Edit {
  return { uri: 'file:///a', range: range(place), removed, text, display: 'diff' };
}

function change(place: string, text: string): Change {
  return { range: range(place), text };
}

function write({ start, end }: Edit['range']): string {
  return `${start.line}:${start.character}-${end.line}:${end.character}`;
}

function check(edits: Edit[], changes: Change[], wanted: string[] | undefined) {
  assert.deepEqual(follow(edits, changes)?.map((one) => write(one.range)), wanted);
}

const HIGHT = edit('1:19-1:24', 'hight', 'height');

test('what is typed above or before an edit moves it along', () => {
  check([HIGHT], [change('0:0-0:0', '# one\n# two\n')], ['3:19-3:24']);
  check([HIGHT], [change('1:4-1:10', 'yield')], ['1:18-1:23']);
  check([HIGHT], [change('0:3-1:4', '')], ['0:18-0:23']);
  check([HIGHT], [change('1:0-1:0', 'x\r\ny')], ['2:20-2:25']);
});

test('what is typed behind an edit leaves it where it is', () => {
  check([HIGHT], [change('1:24-1:24', ' # done')], ['1:19-1:24']);
  check([HIGHT], [change('2:0-3:0', '')], ['1:19-1:24']);
});

test('an edit that was made by hand is off the list, whichever way it was made', () => {
  check([HIGHT], [change('1:19-1:24', 'height')], []);
  check([HIGHT], [change('1:20-1:20', 'e')], []);
  check([edit('0:0-0:4', 'area', 'areas')], [change('0:4-0:4', 's')], []);
  check([edit('2:0-2:0', '', 'import os\n')], [change('2:0-2:0', 'import os\r\n')], []);
  check([edit('0:0-1:3', 'one\ntwo', 'one\ntoo')], [change('1:1-1:2', 'o')], []);
});

test('several changes of one event may make an edit together, and the others move along', () => {
  const other = edit('4:6-4:10', 'aera', 'area');
  check([HIGHT, other], [change('4:6-4:10', 'area'), change('1:19-1:24', 'height')], []);
  check([edit('0:0-0:3', 'abc', 'xbz'), other], [change('0:2-0:3', 'z'), change('0:0-0:1', 'x')], ['4:6-4:10']);
});

test('an offer is gone where the text went elsewhere', () => {
  check([HIGHT], [change('1:20-1:21', 'u')], undefined);
  check([HIGHT], [change('1:10-1:21', '')], undefined);
  check([edit('2:0-2:0', '', 'import os\n')], [change('2:0-2:0', 'im')], undefined);
});

test('the end of a text is where its last line ends', () => {
  assert.deepEqual(endOf({ line: 2, character: 3 }, 'ab'), { line: 2, character: 5 });
  assert.deepEqual(endOf({ line: 2, character: 3 }, 'ab\nc'), { line: 3, character: 1 });
});

test('the nearest edit of the document in front is next, otherwise the first', () => {
  const far = edit('9:0-9:1', 'a', 'b');
  const elsewhere = { ...far, uri: 'file:///b' };
  assert.equal(nearest([elsewhere, far, HIGHT], 'file:///a', 2), HIGHT);
  assert.equal(nearest([elsewhere, far], 'file:///c', 2), elsewhere);
});

test('what was accepted in part is counted from the front', () => {
  assert.equal(accepted('width * height', 'width'), 5);
  assert.equal(accepted('a\nb', 'a\r\nb'), 3);
  assert.equal(accepted('width', 'height'), 0);
});

test('an edit is one line of a list', () => {
  const long = 'message = field.gettext("This field is required.")';
  const lines = ['    return area(2)', '', 'x = 1', long];
  const line = (given: Edit) => oneLine(given, (row) => ({ text: lines[row] }));
  assert.equal(line(edit('0:11-0:15', 'area', 'surface')), 'return area(2)  →  return surface(2)');
  assert.equal(line(edit('1:0', '', 'import os\nimport re')), '+ import os …');
  assert.equal(line(edit('2:0-2:5', 'x = 1', '')), '− x = 1');
  assert.equal(line(edit('3:39-3:47', 'required', 'needed')), '…("This field is required.")  →  …("This field is needed.")');
});
