#!/usr/bin/env python3
"""Holds the tree to its rules. Each rule is a row of a table below or a short function behind them.

Prints `path:line: error: what; instead: what` for each finding, and a count of the rules that hold. Exit code 1:
something was found. `tests/tidy/test_tidy.py` shows for each rule what it catches.
"""

import argparse
import os
import re
import sys
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cxx import Source  # noqa: E402

# Who may include whom: the first row that matches a file holds; OWN is the folder below its layer.
INCLUDES = [
    ('messages/vocabulary/*', 'messages/vocabulary/'),
    ('messages/schema/*', 'messages/schema/'),
    ('messages/wire/*', 'messages/vocabulary/ messages/schema/ messages/wire/ mesh.capnp.h bulk.capnp.h'),
    ('messages/mesh/*', 'messages/vocabulary/ messages/wire/ messages/mesh/'),
    ('storage/*', 'messages/vocabulary/ storage/'),
    ('gpu/*', 'messages/vocabulary/ storage/ gpu/'),
    ('actors/host/*', 'messages/ actors/host/'),
    ('actors/worker/worker_core.*', 'messages/vocabulary/ OWN'),
    ('actors/merger/merger_core.*', 'messages/vocabulary/ OWN'),
    ('actors/worker/*', 'messages/vocabulary/ storage/ gpu/ OWN'),
    ('actors/merger/*', 'messages/vocabulary/ storage/ gpu/ OWN'),
    ('actors/*', 'messages/vocabulary/ OWN'),
    ('gateway/core/*', 'messages/vocabulary/ gateway/core/ gateway/api/ gateway/options.hpp'),
    ('gateway/text/*', 'messages/vocabulary/ gateway/text/'),
    ('gateway/*', 'messages/vocabulary/ messages/mesh/ storage/ gateway/'),
    ('sim/*', 'messages/ storage/ gpu/ actors/ gateway/ sim/'),
    ('cli/*', 'messages/ storage/ gpu/ actors/ gateway/ sim/ cli/'),
    ('bench/*', 'messages/ storage/ gpu/ actors/ gateway/ sim/ cli/ bench/ tests/unit/'),
    ('tests/*', 'messages/ storage/ gpu/ actors/ gateway/ sim/ cli/ bench/ tests/ mesh.capnp.h evolution.capnp.h'),
]

# Which folders may name a library: (header, folders, instead). Tests may name any.
LIBRARIES = [
    (r'caf/', 'actors/host/*', 'write a core; actors/host is the shell of every core'),
    (r'zmq', 'messages/mesh/*', 'send through the PostOffice'),
    (r'(capnp|kj)/', 'messages/wire/* messages/schema/*', 'use the structs of messages/vocabulary and the codec'),
    (r'rocksdb/', 'storage/store/*', 'use the Store'),
    (r'boost/(beast|asio)', 'gateway/http/* gateway/gateway.cpp cli/http_client.* cli/load_client.*', 'keep sockets in gateway/http'),
    (r'boost/json', 'storage/* actors/merger/evaluation/task.cpp gateway/api/* gateway/text/* sim/trace/* sim/report/* cli/*', 'pass structs; JSON ends at the border'),
    (r'nlohmann/', '', 'use boost/json'),
    (r'prometheus/', 'gateway/metrics/*', 'count in a struct; gateway/metrics exports it'),
    (r'(pcre2|unicode/)', 'gateway/text/*', 'use gateway/text'),
    (r'(toml\+\+|CLI)/', 'cli/*', 'take an options struct; only cli reads arguments and files'),
    (r'spdlog/', 'actors/host/* cli/*', 'log through the Outbox'),
    (r'zlib', 'sim/trace/zip_file.cpp', 'read and write lines through sim/trace/zip_file.hpp'),
    (r'(xxhash|openssl)', 'storage/hash/*', 'use storage/hash'),
    (r'Eigen/', 'actors/oracle/* actors/merger/weights/*', 'use the oracle\'s models, or the merger\'s matrices'),
    (r'(immintrin|arm_neon)', 'gpu/kernels/cpu/* gpu/device/cpu/stream_copy.cpp', 'call the Ops interface'),
    (r'(cuda|cublas|nccl)', 'gpu/*/cuda/* gpu/*_cuda.*', 'call the Device or Ops interface'),
]

# Headers that cost every includer seconds, and may therefore stand in source files only.
HEAVY = r'(caf/|boost/(beast|asio)|boost/json\.hpp|capnp/|kj/|zmq|rocksdb/|nlohmann/|Eigen/|toml\+\+|CLI/)'
HEAVY_ALLOWED = {
    'actors/merger/weights/eigen_views.hpp': 'for the source files of its folder',
    'messages/schema/capnp.hpp': 'mends the library and is included by its few users only',
    'gateway/http/*': 'coroutines are declared with asio types; no other folder includes these',
    'messages/mesh/[lnsz]*.hpp': 'lane, node, sockets and zap own sockets; mesh.hpp hides them from the others',
    'messages/mesh/bulk_*.hpp': 'as these; bulk.hpp hides them',
}

# Pure deciding code: no thread, socket, clock, file or random device within reach.
CORES = ('actors/queue/* actors/scheduler/* actors/oracle/* actors/placement/* actors/autoscaler/* '
         'actors/worker/worker_core.* actors/merger/merger_core.* gateway/core/*')
CORE_HEADERS = (r'(thread|mutex|shared_mutex|condition_variable|future|semaphore|stop_token|fstream|filesystem|iostream'
                r'|cstdio|cstdlib|ctime|unistd\.h|time\.h|fcntl\.h|signal\.h|pthread\.h|(sys|netinet|arpa)/.*|boost/asio.*)\Z')

# (call, where it is allowed, instead).
BANNED = [
    (r'\b(steady_clock|system_clock|high_resolution_clock|MeshClock)::now\b',
     'messages/mesh/* actors/host/* actors/worker/engine_runner.* gateway/http/* cli/* bench/*'
     ' gateway/models/hf_text.cpp tests/unit/messages/*', 'take `Instant now`'),
    (r'\b(clock_gettime|gettimeofday|std::time)\s*\(', 'bench/*', 'take `Instant now`'),
    (r'\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(', '', 'wait for the event, or set a timer'),
    (r'\brandom_device\b', 'gateway/http/* cli/* tests/*', 'take a seed'),
    (r'\b(std::rand|srand|rand)\s*\(', '', 'use a seeded engine'),
    (r'\bgetenv\s*\(', 'cli/* tests/*', 'take an options struct'),
    (r'\b(setenv|putenv)\s*\(', 'tests/*', 'pass options'),
    (r'(?<![.\w:])assert\s*\(', '', 'use SANGAM_ASSERT, which is always on'),
    (r'\.detach\s*\(\)', '', 'own the thread and join it'),
    (r'\bstd::(cout|cerr|clog)\b|\b(printf|fprintf|puts)\s*\(', 'cli/* bench/* actors/host/* messages/vocabulary/assert.hpp tests/*',
     'log through the Outbox, or return an Error'),
    (r'\busing\s+namespace\s+std\b', '', 'write std::'),
    (r'\bdynamic_cast\b', 'actors/host/* tests/*', 'use a variant or a virtual function'),
    (r'\bgoto\b', '', 'return early, or name the step'),
    # A private constructor leaves no other way than `std::unique_ptr<T>(new T(...))`.
    (r'(?<!>\()\bnew\s+[A-Za-z_:]+\s*[({\[;]', '', 'use std::make_unique or a container'),
]

FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 5
FILE_LINES_MAX = 400
TEST_LINES_MAX = 800
# 'path' or 'path:function': why it may be larger.
SIZE_ALLOWED = {}
PARAMETERS_ALLOWED = {}

TODO_KINDS = 'perf|size|feature|portability|test'

SKIPPED_FOLDERS = {'build', '.git', '__pycache__', '.cache', 'node_modules', '.venv', 'venv'}
TEXT = {'.hpp', '.cpp', '.cu', '.cuh', '.py', '.sh', '.txt', '.md', '.toml', '.json', '.yml', '.yaml', '.capnp', '.cmake', ''}
CXX = {'.hpp', '.cpp', '.cu', '.cuh'}
# Paths of the place where this tree is written mean nothing to its readers. Spelt in pieces: this file is read too.
STRANGE_PATHS = re.compile('|'.join([r'(?<![\w.-])/' + 'work' + r'/\w', r'\.\./' + 'shared' + '/', '/tmp/' + 'brief']))


def matches(path, globs):
    return any(fnmatch(path, glob) for glob in globs.split())


class Tree:
    """The text files of a tree, read once."""

    def __init__(self, files, folders=()):
        self.files = files  # Path to text.
        self.folders = sorted(folders)
        self.sources = {path: Source(text) for path, text in files.items() if Path(path).suffix in CXX}

    @staticmethod
    def read(root):
        files, top = {}, set()
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
            inside = Path(folder).relative_to(root)
            for name in sorted(names):
                path = inside / name
                if len(path.parts) > 1 and not path.parts[0].startswith('.'):
                    top.add(path.parts[0])
                if path.suffix in TEXT and path.parts[0] != 'models' and (root / path).stat().st_size < 1 << 20:
                    files[path.as_posix()] = (root / path).read_text(errors='replace')
        return Tree(files, top)


def own_folder(path):
    return '/'.join(path.split('/')[:2]) + '/'


def include_directions(tree):
    for path, source in tree.sources.items():
        row = next((allowed for glob, allowed in INCLUDES if fnmatch(path, glob)), None)
        if row is None:
            yield path, 1, 'no row of INCLUDES speaks of this file', 'put it into a layer'
            continue
        allowed = tuple(own_folder(path) if entry == 'OWN' else entry for entry in row.split())
        for line, own, _ in source.includes():
            if own and not own.startswith(allowed):
                yield path, line, f'includes "{own}"', 'include only ' + ' '.join(allowed)


def library_owners(tree):
    for path, source in tree.sources.items():
        if path.startswith('tests/'):
            continue
        for line, _, library in source.includes():
            for header, folders, instead in LIBRARIES:
                if library and re.match(header, library) and not matches(path, folders + ' bench/*'):
                    yield path, line, f'includes <{library}>', instead


def heavy_headers(tree):
    for path, source in tree.sources.items():
        if not path.endswith('.hpp') or path.startswith('tests/') or any(fnmatch(path, g) for g in HEAVY_ALLOWED):
            continue
        for line, _, library in source.includes():
            if library and re.match(HEAVY, library):
                yield path, line, f'a header includes <{library}>', 'include it in the source file, behind a pointer'


def cores_reach_nothing(tree):
    for path, source in tree.sources.items():
        if not matches(path, CORES):
            continue
        for line, _, library in source.includes():
            if library and re.match(CORE_HEADERS, library):
                yield path, line, f'a core includes <{library}>', 'let the shell do it; answer through the Outbox'


def banned_calls(tree):
    rows = [(set(re.findall(r'[a-z_]{3,}', re.sub(r'\\.', ' ', pattern))), re.compile(pattern), allowed, instead)
            for pattern, allowed, instead in BANNED]
    for path, source in tree.sources.items():
        for words, pattern, allowed, instead in rows:
            if words.isdisjoint(source.words) or matches(path, allowed):
                continue
            for match in pattern.finditer(source.code):
                yield path, source.line_of(match.start()), f'`{match.group().strip()}`', instead


def function_size(tree):
    for path, source in tree.sources.items():
        for function in source.functions:
            if function.lines > FUNCTION_LINES_MAX and f'{path}:{function.name}' not in SIZE_ALLOWED:
                yield (path, function.line, f'{function.name} has {function.lines} lines',
                       f'at most {FUNCTION_LINES_MAX}: name its steps')


def parameters(tree):
    for path, source in tree.sources.items():
        for function in source.functions:
            if function.parameters > PARAMETERS_MAX and f'{path}:{function.name}' not in PARAMETERS_ALLOWED:
                yield (path, function.line, f'{function.name} takes {function.parameters} parameters',
                       f'at most {PARAMETERS_MAX}: values that travel together are a struct')


def file_size(tree):
    for path, text in tree.files.items():
        if Path(path).suffix not in CXX | {'.py'} or path in SIZE_ALLOWED:
            continue
        most = TEST_LINES_MAX if path.startswith('tests/') else FILE_LINES_MAX
        lines = text.count('\n')
        if lines > most:
            yield path, most + 1, f'{lines} lines', f'at most {most}: one role a file'


def purpose_first(tree):
    marks = {'.hpp': '// ', '.cpp': '// ', '.cu': '// ', '.cuh': '// ', '.capnp': '# ', '.py': '"""', '.sh': '# '}
    for path, text in tree.files.items():
        lines = [line for line in text.split('\n', 3) if not line.startswith('#!')]
        mark = marks.get(Path(path).suffix)
        if mark and not lines[0].startswith(mark):
            yield path, 1, 'does not begin with its purpose', f'begin with `{mark}` and one or two sentences'
        if path.endswith('.hpp') and '#pragma once' not in text:
            yield path, 1, 'may be included twice', 'write #pragma once'


def schema_comments(tree):
    entry = re.compile(r'\s*(?:(?:struct|enum|union|interface)\s+(\w+)\s*\{|(\w+)\s*(?:@\d+\s*)?:(?:union|group)\s*\{|(\w+)\s*@\d+[^#]*;)')
    for path, text in tree.files.items():
        lines = text.split('\n') if fnmatch(path, 'messages/schema/*.capnp') else []
        for number, line in enumerate(lines, 1):
            match = entry.match(line)
            after = next((later.strip() for later in lines[number:] if later.strip()), '')
            if match and '#' not in line and not after.startswith('#'):
                name = next(group for group in match.groups() if group)
                yield path, number, f'{name} has no comment', 'say what it means, its unit and its default'


def folders_in_readme(tree):
    if 'README.md' in tree.files:
        for folder in tree.folders:
            if f'{folder}/' not in tree.files['README.md']:
                yield 'README.md', 1, f'does not name the folder {folder}/', 'say what it is for'
    actors = {path.split('/')[1] for path in tree.files if path.startswith('actors/') and path.count('/') > 1} - {'host'}
    for actor in sorted(actors):
        if f'actors/{actor}/README.md' not in tree.files:
            yield f'actors/{actor}/README.md', 1, 'is missing', 'say what the actor owns, hears, says, bounds, does on failure'


def typed_todos(tree):
    pattern = re.compile(rf'\b(?:TO' rf'DO|FIX' rf'ME|HA' rf'CK|XX' rf'X)\b(?!\((?:{TODO_KINDS})\): \S)')
    for path, text in tree.files.items():
        if Path(path).suffix not in CXX | {'.py', '.capnp', '.sh', '.cmake'} and not path.endswith('CMakeLists.txt'):
            continue
        for match in pattern.finditer(text):
            yield path, text.count('\n', 0, match.start()) + 1, f'`{match.group()}` without a kind', f'write one of {TODO_KINDS} in parentheses'


def no_strange_paths(tree):
    for path, text in tree.files.items():
        if path == '.ci/run':
            continue  # Written for that place.
        for match in STRANGE_PATHS.finditer(text):
            yield path, text.count('\n', 0, match.start()) + 1, f'`{match.group()}` is no path of this project', 'name a path in the tree'


def one_definition(tree):
    """Two types of one name in one namespace link without a word and then read each other's bytes."""
    definition = re.compile(r'^(?:class|struct|enum class) (\w+)(?: final)?(?: : [^;{]+)? \{', re.M)
    first = {}
    for path, text in sorted(tree.files.items()):
        if Path(path).suffix != '.hpp' or path.startswith('tests/'):
            continue
        for match in definition.finditer(text):
            spaces = re.findall(r'^namespace ([\w:]+) \{', text[:match.start()], re.M)
            name = '::'.join(spaces + [match.group(1)])
            if first.setdefault(name, path) != path:
                yield path, text.count('\n', 0, match.start()) + 1, f'{name} is defined in {first[name]} too', 'another name, or a namespace of its own'


def build_files(tree):
    pattern = re.compile(r'^\s*(file\s*\(\s*GLOB\w*|include_directories\s*\(|link_directories\s*\()', re.M)
    for path, text in tree.files.items():
        if path.endswith(('CMakeLists.txt', '.cmake')):
            for match in pattern.finditer(text):
                yield path, text.count('\n', 0, match.start(1)) + 1, f'`{match.group(1)}`', 'list the sources; use sangam_layer'


RULES = [include_directions, library_owners, heavy_headers, cores_reach_nothing, banned_calls, function_size, parameters,
         file_size, purpose_first, schema_comments, folders_in_readme, typed_todos, no_strange_paths, one_definition, build_files]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('root', nargs='?', type=Path, default=Path(__file__).resolve().parents[2])
    tree = Tree.read(parser.parse_args().root)
    failed = 0
    for rule in RULES:
        findings = sorted(set(rule(tree)))
        for path, line, what, instead in findings:
            print(f'{path}:{line}: error: {what}; instead: {instead}')
        failed += bool(findings)
    print(f'tidy: {len(RULES) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
