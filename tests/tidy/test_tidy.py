"""Shows for each rule of tidy one thing that it catches and one beside it that it lets pass."""

import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tidy  # noqa: E402
from cxx import Source  # noqa: E402


def findings(rule, **files):
    """What the rule says of files given as folder__name_ext='text', as (path, line)."""
    tree = tidy.Tree({name.replace('__', '/').replace('_DOT_', '.'): text for name, text in files.items()})
    return [(path, line) for path, line, _, _ in rule(tree)]


def functions(text):
    return {f.name: (f.line, f.lines, f.parameters) for f in Source(textwrap.dedent(text)).functions}


class IncludeRules(unittest.TestCase):
    def test_a_lower_layer_does_not_include_a_higher_one(self):
        self.assertEqual(findings(tidy.include_directions, storage__a_DOT_cpp='// A.\n#include "gpu/model/b.hpp"\n'),
                         [('storage/a.cpp', 2)])
        self.assertEqual(findings(tidy.include_directions, gpu__a_DOT_cpp='#include "storage/hash/b.hpp"\n'), [])

    def test_a_core_includes_only_the_vocabulary_and_its_own_folder(self):
        text = '#include "messages/vocabulary/time.hpp"\n#include "actors/queue/a.hpp"\n#include "actors/scheduler/b.hpp"\n'
        self.assertEqual(findings(tidy.include_directions, actors__queue__a_DOT_cpp=text), [('actors/queue/a.cpp', 3)])

    def test_only_the_worker_reaches_the_engine_and_its_core_does_not(self):
        text = '#include "gpu/engine/engine.hpp"\n'
        self.assertEqual(findings(tidy.include_directions, actors__worker__runner_DOT_cpp=text), [])
        self.assertEqual(len(findings(tidy.include_directions, actors__worker__worker_core_DOT_cpp=text)), 1)
        self.assertEqual(len(findings(tidy.include_directions, actors__oracle__a_DOT_cpp=text)), 1)

    def test_gateway_and_actors_do_not_include_each_other(self):
        self.assertEqual(len(findings(tidy.include_directions, gateway__a_DOT_cpp='#include "actors/queue/a.hpp"\n')), 1)
        self.assertEqual(len(findings(tidy.include_directions, actors__host__a_DOT_cpp='#include "gateway/gateway.hpp"\n')), 1)

    def test_a_file_outside_all_layers_is_found(self):
        self.assertEqual(findings(tidy.include_directions, misc__a_DOT_cpp=''), [('misc/a.cpp', 1)])

    def test_an_include_in_a_comment_is_none(self):
        self.assertEqual(findings(tidy.include_directions, storage__a_DOT_cpp='// #include "cli/a.hpp"\n'), [])

    def test_a_library_is_named_in_its_folder_only(self):
        self.assertEqual(findings(tidy.library_owners, actors__queue__a_DOT_cpp='\n#include <caf/all.hpp>\n'),
                         [('actors/queue/a.cpp', 2)])
        self.assertEqual(findings(tidy.library_owners, actors__host__a_DOT_cpp='#include <caf/all.hpp>\n'), [])
        self.assertEqual(len(findings(tidy.library_owners, gateway__core__a_DOT_cpp='#include <boost/beast/http.hpp>\n')), 1)
        self.assertEqual(len(findings(tidy.library_owners, gpu__engine__a_DOT_cpp='#include <rocksdb/db.h>\n')), 1)

    def test_a_heavy_header_stays_out_of_headers(self):
        self.assertEqual(len(findings(tidy.heavy_headers, storage__store__a_DOT_hpp='#include <rocksdb/db.h>\n')), 1)
        self.assertEqual(findings(tidy.heavy_headers, storage__store__a_DOT_cpp='#include <rocksdb/db.h>\n'), [])

    def test_a_core_has_no_thread_file_or_socket(self):
        for header in ('thread', 'mutex', 'fstream', 'sys/socket.h', 'unistd.h'):
            self.assertEqual(len(findings(tidy.cores_reach_nothing, actors__queue__a_DOT_hpp=f'#include <{header}>\n')), 1)
        self.assertEqual(findings(tidy.cores_reach_nothing, actors__queue__a_DOT_hpp='#include <vector>\n'), [])
        self.assertEqual(findings(tidy.cores_reach_nothing, actors__worker__engine_runner_DOT_cpp='#include <thread>\n'), [])


class BannedCalls(unittest.TestCase):
    def test_each_row_catches_its_call(self):
        calls = ['auto t = std::chrono::steady_clock::now();', 'clock_gettime(CLOCK_REALTIME, &t);',
                 'std::this_thread::sleep_for(a);', 'std::random_device seed;', 'int x = std::rand();', 'getenv("A");',
                 'setenv("A", "b", 1);', 'assert(a);', 'thread.detach();', 'std::cout << a;', 'using namespace std;',
                 'dynamic_cast<A*>(b);', 'goto end;', 'auto* a = new A(1);']
        self.assertEqual(len(calls), len(tidy.BANNED))
        for call in calls:
            with self.subTest(call):
                self.assertEqual(findings(tidy.banned_calls, actors__queue__a_DOT_cpp=f'// A.\n{call}\n'),
                                 [('actors/queue/a.cpp', 2)])

    def test_a_call_is_allowed_in_its_shell_and_in_words(self):
        clock = 'auto t = std::chrono::steady_clock::now();\n'
        self.assertEqual(findings(tidy.banned_calls, actors__host__host_DOT_cpp=clock), [])
        words = '// steady_clock::now is banned.\nauto s = "sleep_for(1)";\nauto r = R"(goto end)";\n'
        self.assertEqual(findings(tidy.banned_calls, actors__queue__a_DOT_cpp=words), [])

    def test_what_only_looks_like_a_banned_call_passes(self):
        text = 'static_assert(a);\nSANGAM_ASSERT(a);\nA(const A&) = delete;\nstd::unique_ptr<A>(new A(b));\nlast.asleep();\n'
        self.assertEqual(findings(tidy.banned_calls, storage__a_DOT_cpp=text), [])


class Functions(unittest.TestCase):
    def test_a_free_function_is_measured_from_its_signature_to_its_brace(self):
        self.assertEqual(functions('''\
            namespace a {

            int f(int x,
                  int y) {
              if (x) { return 1; }
              return y;
            }
            }
            '''), {'f': (3, 5, 2)})

    def test_members_constructors_and_operators_are_functions(self):
        found = functions('''\
            class A final : public B<int(*)(int)> {
             public:
              A(int x, std::map<int, int> y) : x_{x}, y_(std::move(y)), z_{} {
                call([&](int a) { return a; });
              }
              ~A() override {}
              bool operator()(int a, int b) const noexcept { return a < b; }
              auto get() const -> std::vector<int> { return {}; }
              virtual void many(int a, int b, int c, int d, int e, int f) = 0;
              int x_ = 0;
              std::function<void(int, int)> call{};
              std::vector<int> y_{1, 2, 3};
            };
            ''')
        self.assertEqual(found, {'A': (3, 3, 2), '~A': (6, 1, 0), 'operator()': (7, 1, 2), 'get': (8, 1, 0),
                                 'many': (9, 0, 6)})

    def test_braces_in_literals_comments_and_macros_do_not_count(self):
        found = functions('''\
            #define OPEN {
            void f() {
              auto a = "}"; auto b = '}'; auto c = R"x(}})x"; auto n = 1'000'000;  // }
              /* } */
            }
            void g(const std::function<int(int, int)>& f, int n = h(1, 2)) {}
            ''')
        self.assertEqual(found, {'f': (2, 4, 0), 'g': (6, 1, 2)})

    def test_values_and_lambdas_at_namespace_level_are_no_functions(self):
        self.assertEqual(functions('''\
            constexpr std::array<A, 2> kTable{{{"a", f}, {"b", g}}};
            const auto twice = [](int x) { return 2 * x; };
            using F = int (*)(int, int, int, int, int, int);
            enum class E { a, b };
            struct S { int x = 0; };
            '''), {})

    def test_templates_with_constraints_are_functions(self):
        self.assertEqual(functions('''\
            template <class T>
              requires std::integral<T>
            T twice(T x) {
              return 2 * x;
            }
            TEST_CASE("a (strange) name, with { braces") {
              CHECK(twice(2) == 4);
            }
            '''), {'twice': (1, 5, 1), 'TEST_CASE': (6, 3, 0)})

    def test_a_long_function_is_found_from_one_line_above_the_limit(self):
        def text(lines):
            return 'void f() {\n' + 'g();\n' * (lines - 2) + '}\n'
        self.assertEqual(findings(tidy.function_size, storage__a_DOT_cpp=text(70)), [])
        self.assertEqual(findings(tidy.function_size, storage__a_DOT_cpp=text(71)), [('storage/a.cpp', 1)])

    def test_the_sixth_parameter_is_found(self):
        five, six = 'void f(A a, B<int, 2> b, C c, D d, E e);\n', 'void f(A a, B b, C c, D d, E e, F f) {}\n'
        self.assertEqual(findings(tidy.parameters, storage__a_DOT_cpp=five), [])
        self.assertEqual(findings(tidy.parameters, storage__a_DOT_cpp=six), [('storage/a.cpp', 1)])


class Texts(unittest.TestCase):
    def test_a_file_is_too_long_from_one_line_above_the_limit_and_tests_have_more(self):
        self.assertEqual(findings(tidy.file_size, storage__a_DOT_cpp='\n' * 400, tests__a_DOT_cpp='\n' * 800), [])
        self.assertEqual(len(findings(tidy.file_size, storage__a_DOT_cpp='\n' * 401, tests__a_DOT_cpp='\n' * 801)), 2)

    def test_a_file_begins_with_its_purpose(self):
        self.assertEqual(findings(tidy.purpose_first, storage__a_DOT_cpp='#include <a>\n'), [('storage/a.cpp', 1)])
        self.assertEqual(findings(tidy.purpose_first, storage__a_DOT_cpp='// Reads a.\n', tools__b_DOT_py='#!/usr/bin/x\n"""B."""\n'), [])
        self.assertEqual(len(findings(tidy.purpose_first, storage__a_DOT_hpp='// A.\n')), 1)

    def test_every_field_and_message_of_the_schema_has_a_comment(self):
        good = 'struct A {\n  # Says a.\n  x @0 :UInt32;\n  # In bytes.\n  body :union {\n    # One of.\n    y @1 :Text;  # Y.\n  }\n}\n'
        self.assertEqual(findings(tidy.schema_comments, messages__schema__a_DOT_capnp=good), [])
        bad = 'struct A {\n  x @0 :UInt32;\n  y @1 :UInt32;\n  # In bytes.\n}\nenum E {\n  a @0;\n}\n'
        self.assertEqual(findings(tidy.schema_comments, messages__schema__a_DOT_capnp=bad),
                         [('messages/schema/a.capnp', line) for line in (1, 2, 6, 7)])

    def test_the_readme_names_every_folder(self):
        tree = tidy.Tree({'README.md': 'gpu/ runs models.'}, ['gpu', 'storage'])
        self.assertEqual([what for _, _, what, _ in tidy.folders_in_readme(tree)], ['does not name the folder storage/'])
        self.assertEqual(list(tidy.folders_in_readme(tidy.Tree({}, ['gpu']))), [])

    def test_every_actor_has_a_readme(self):
        self.assertEqual(findings(tidy.folders_in_readme, actors__queue__a_DOT_cpp=''), [('actors/queue/README.md', 1)])
        self.assertEqual(findings(tidy.folders_in_readme, actors__queue__README_DOT_md=''), [])

    def test_a_debt_has_a_kind(self):
        word = 'TO' + 'DO'
        self.assertEqual(findings(tidy.typed_todos, storage__a_DOT_cpp=f'\n// {word}: later\n'), [('storage/a.cpp', 2)])
        self.assertEqual(findings(tidy.typed_todos, storage__a_DOT_cpp=f'// {word}(perf): one copy too many\n'), [])

    def test_paths_of_other_places_are_found(self):
        for path in ('/' + 'work/main', '../' + 'shared/x'):
            self.assertEqual(findings(tidy.no_strange_paths, docs__a_DOT_md=f'see {path}\n'), [('docs/a.md', 1)])
        self.assertEqual(findings(tidy.no_strange_paths, docs__a_DOT_md='actors/worker, and /home/' + 'work/x\n'), [])

    def test_a_type_has_one_definition_in_a_namespace(self):
        one = '// A.\nnamespace sangam {\nstruct Lane {\n};\n}\n'
        other = '// B.\nnamespace sangam::mesh {\nclass Lane final : public Base {\n};\n}\n'
        self.assertEqual(findings(tidy.one_definition, actors__queue__a_DOT_hpp=one, messages__mesh__a_DOT_hpp=other), [])
        self.assertEqual(findings(tidy.one_definition, actors__queue__a_DOT_hpp=one, gateway__core__a_DOT_hpp=one),
                         [('gateway/core/a.hpp', 3)])

    def test_build_files_list_their_sources(self):
        self.assertEqual(findings(tidy.build_files, gpu__CMakeLists_DOT_txt='\nfile(GLOB a *.cpp)\n'), [('gpu/CMakeLists.txt', 2)])
        self.assertEqual(findings(tidy.build_files, gpu__CMakeLists_DOT_txt='sangam_layer(gpu SOURCES a.cpp)\n'), [])


class Program(unittest.TestCase):
    def run_on(self, text):
        with tempfile.TemporaryDirectory() as root:
            (Path(root) / 'storage').mkdir()
            (Path(root) / 'storage' / 'a.cpp').write_text(text)
            return subprocess.run([sys.executable, tidy.__file__, root], capture_output=True, text=True)

    def test_a_clean_tree_passes_and_a_finding_fails_with_place_and_remedy(self):
        clean = self.run_on('// Adds.\nint add(int a, int b) { return a + b; }\n')
        self.assertEqual((clean.returncode, clean.stdout), (0, f'tidy: {len(tidy.RULES)} passed, 0 failed\n'))
        dirty = self.run_on('// Adds.\n#include "cli/a.hpp"\n')
        self.assertEqual(dirty.returncode, 1)
        self.assertEqual(dirty.stdout.splitlines(),
                         ['storage/a.cpp:2: error: includes "cli/a.hpp"; instead: include only messages/vocabulary/ storage/',
                          f'tidy: {len(tidy.RULES) - 1} passed, 1 failed'])


if __name__ == '__main__':
    unittest.main()
