"""Reads C++ as far as tidy needs it: text without comments and literals, and where functions begin and end."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

# Whatever may hide braces and words; digit separators are not the start of a character literal.
HIDING = re.compile(
    r'//[^\n]*|/\*.*?\*/'
    r'|R"(?P<mark>[^(\s"]*)\(.*?\)(?P=mark)"'
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'", re.S)
BEFORE = re.compile(r'\s*(?:(?:public|private|protected)\s*:\s*)*')  # What stands before a declaration.
PREPROCESSOR = re.compile(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"(?P<own>[^"]+)"|<(?P<library>[^>]+)>)', re.M)

QUALIFIER = r'(?:const|noexcept(?:\s*\([^()]*\))?|override|final|mutable|volatile|try|&&?)'
TAIL = re.compile(rf'\s*(?:{QUALIFIER}\s*)*(?:->[^;{{}}]*|requires\b.*|:(?!:).*|=\s*(?:0|default|delete))?\s*\Z', re.S)
INITIALIZERS = re.compile(rf'\s*(?:{QUALIFIER}\s*)*:(?!:)', re.S)
NO_NAMES = {'noexcept', 'decltype', 'alignas', 'requires', 'explicit', 'if', 'for', 'while', 'switch', 'catch',
            'return', 'sizeof', 'static_assert', 'constexpr', 'void', 'auto'}
NAME = re.compile(r'(operator\s*(?:\(\)|\[\]|[^\s\w(]+|\w[\w:&* ]*)|~?\w+)\s*\Z')
TYPE = re.compile(r'\b(?:class|struct|union|enum)\b')


def blank(match):
    """As many characters and lines as before, none of which means anything."""
    return re.sub(r'[^\n]', ' ', match.group())


@dataclass
class Function:
    name: str
    line: int
    lines: int  # 0: only declared.
    parameters: int


def parameter_count(text):
    text = text.strip()
    if text in ('', 'void'):
        return 0
    depth, count = 0, 1
    for c in text:
        if c in '(<[{':
            depth += 1
        elif c in ')>]}':
            depth -= 1
        elif c == ',' and depth == 0:
            count += 1
    return count


def groups_of(head):
    """The outermost parentheses of a head: (before, inside, after)."""
    depth, start = 0, 0
    for position, c in enumerate(head):
        if c == '(':
            if depth == 0:
                start = position
            depth += 1
        elif c == ')' and depth > 0:
            depth -= 1
            if depth == 0:
                yield head[:start], head[start + 1:position], head[position + 1:]


def signature(head):
    """(name, parameters, text behind them) if the head is that of a function, else None."""
    if re.match(r'\s*(?:using|typedef|friend\s+class|return|else|do)\b', head):
        return None
    for before, inside, after in groups_of(head):
        name = NAME.search(before)
        if not name or name.group(1) in NO_NAMES or re.search(r'=\s*\Z|=[^=<>!]*\Z', before[:name.start()]):
            continue
        if TAIL.match(after) and not after.lstrip().startswith('('):
            return name.group(1).strip(), inside, after
    return None


def opens_initializer(head, found):
    """Whether a brace behind this head begins the value of a member in a constructor's list."""
    return bool(found and INITIALIZERS.match(found[2]) and re.search(r'[\w>]\s*\Z', head))


class Source:
    """One C++ file."""

    def __init__(self, text):
        self.text = text

    @cached_property
    def code(self):
        """Without comments, literals and preprocessor lines; positions and lines are those of the file."""
        return PREPROCESSOR.sub(blank, HIDING.sub(blank, self.text))

    @cached_property
    def words(self):
        """Every word of the code: who looks for a word need not search all text."""
        return set(re.findall(r'\w+', self.code))

    @cached_property
    def uncommented(self):
        """Without comments only."""
        return HIDING.sub(lambda m: blank(m) if m.group().startswith('/') else m.group(), self.text)

    @cached_property
    def line_starts(self):
        return [0] + [match.end() for match in re.finditer('\n', self.text)]

    def line_of(self, position):
        return bisect_right(self.line_starts, position)

    def includes(self):
        """(line, own path or None, library path or None) of each include."""
        for match in INCLUDE.finditer(self.uncommented):
            yield self.line_of(match.start('own') if match['own'] else match.start('library')), match['own'], match['library']

    @cached_property
    def functions(self):
        """Functions with a body at namespace or class level, and declarations there."""
        return list(self.find_functions())

    def find_functions(self):
        code = self.code
        blocks = []  # Of the open braces: [kind, start of what stands before the next brace, open function].
        kind, start, opened, parentheses = 'scope', 0, None, 0
        for match in re.finditer(r'[{}();]', code):
            c, at = match.group(), match.start()
            if c == '(':
                parentheses += 1
            elif c == ')':
                parentheses -= 1
            elif c == ';' and parentheses == 0:
                if kind == 'scope':
                    yield from self.declared(start, at)
                start = at + 1
            elif c == '{':
                head = code[start:at]
                found = signature(head) if kind == 'scope' and parentheses == 0 else None
                blocks.append((kind, start, opened, parentheses))
                if kind != 'scope' or parentheses or opens_initializer(head, found):
                    kind = 'inner' if kind != 'scope' or parentheses else 'value'
                elif found:
                    kind, opened = 'function', (found, self.first_line(start))
                elif re.search(r'\bnamespace\b|\bextern\b', head) or (TYPE.search(head) and '=' not in head):
                    kind = 'scope'
                else:
                    kind = 'value'
                start, parentheses = at + 1, 0
            elif c == '}' and blocks:
                if kind == 'function':
                    (name, inside, _), first = opened
                    yield Function(name, first, self.line_of(at) - first + 1, parameter_count(inside))
                closed = kind
                kind, start_before, opened, parentheses = blocks.pop()
                start = start_before if closed == 'value' else at + 1

    def first_line(self, start):
        return self.line_of(BEFORE.match(self.code, start).end())

    def declared(self, start, end):
        found = signature(self.code[start:end])
        if found:
            yield Function(found[0], self.first_line(start), 0, parameter_count(found[1]))
