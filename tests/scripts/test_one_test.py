#!/usr/bin/env python3
"""scripts/test_one.sh in a house of two rooms: it builds one program, runs what was named, and lists candidates.

  tests/scripts/test_one_test.py
"""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(house LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
enable_testing()
include(GoogleTest)
find_package(GTest REQUIRED)
add_custom_target(skein_test_main)
add_custom_target(skein)
add_custom_target(skein_file_faults)
add_custom_target(skein_system_faults)
add_custom_target(check_slow COMMAND ${CMAKE_COMMAND} -E touch built_for_slow)
foreach(room one two)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS skein/${room}/*_test.cc)
  add_executable(skein_${room}_test ${sources})
  target_link_libraries(skein_${room}_test GTest::gtest_main)
  set_target_properties(skein_${room}_test PROPERTIES CROSSCOMPILING_EMULATOR "/usr/bin/env;ROOM=${room}")
  gtest_discover_tests(skein_${room}_test TEST_PREFIX ${room}/ PROPERTIES TIMEOUT 60)
endforeach()
add_test(NAME survival/slow COMMAND ${CMAKE_COMMAND} -E echo "a script")
set_tests_properties(survival/slow PROPERTIES LABELS "whole;check.slow")
"""
PACKER = """
#include <cstdlib>
#include <string>
#include <gtest/gtest.h>
TEST(Packer, Rows) { EXPECT_STREQ(getenv("ROOM"), "one"); }
TEST(Packer, RowsOfALane) {}
TEST(Packer, RowsAreLong) {}
TEST(Packer, Fails) { FAIL(); }
class Sizes : public testing::TestWithParam<int> {};
TEST_P(Sizes, AreEven) { EXPECT_EQ(GetParam() % 2, 0); }
INSTANTIATE_TEST_SUITE_P(Some, Sizes, testing::Values(2, 4, 6));
"""
TEST = "#include <gtest/gtest.h>\nTEST({}, {}) {{}}\n"


class TestOne(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.house = Path(folder.name).resolve()
        cls.write("CMakeLists.txt", PROJECT)
        cls.write("skein/one/packer_test.cc", PACKER)
        cls.write("skein/one/packer.h", "")
        cls.write("skein/one/alone.h", "")
        cls.write("skein/one/both_test.cc", TEST.format("Both", "AreThere"))
        cls.write("skein/two/both_test.cc", TEST.format("Both", "AreThere"))
        cls.write("cmake/test_parts.cmake", 'set(SKEIN_LEFT_OUT\n  "slow ^one/Packer\\\\.RowsAre"\n)\n')
        cls.write(".deps/services/.done", "")
        for name in ("test_one.sh", "test_one.py"):
            cls.write(f"scripts/{name}", "")
            shutil.copy(ROOT / "scripts" / name, cls.house / "scripts" / name)
        subprocess.run(["cmake", "-G", "Ninja", "-S", cls.house, "-B", cls.house / "build"], check=True,
                       stdout=subprocess.DEVNULL)

    @classmethod
    def write(cls, name, text):
        (cls.house / name).parent.mkdir(parents=True, exist_ok=True)
        (cls.house / name).write_text(text)

    def run_it(self, *arguments, code=0, says=(), cwd=None):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GTEST_")}
        run = subprocess.run([self.house / "scripts/test_one.sh", *arguments], capture_output=True, text=True,
                             cwd=cwd, env=environment)
        output = run.stdout + run.stderr
        self.assertEqual(run.returncode, code, output)
        for text in says:
            self.assertIn(text, output)
        return output

    def test_1_builds_the_program_of_the_test_alone(self):
        self.run_it("Packer.Rows", says=["[ RUN      ] Packer.Rows\n", "1 test passed: built in"])
        self.assertTrue((self.house / "build/skein_one_test").exists())
        self.assertFalse((self.house / "build/skein_two_test").exists())

    def test_names(self):
        self.run_it("Packer.Rows*", says=["Packer.RowsOfALane", "2 tests passed", "left out, because long: "
                                            "one/Packer.RowsAreLong (scripts/check.sh slow)"])
        self.run_it("Packer.RowsAreLong", says=["1 test passed"])
        self.run_it("RowsOfALane", says=["1 test passed"])
        self.run_it("one/Packer.Rows", says=["1 test passed"])
        self.run_it("two/*", says=["1 test passed"])
        self.run_it("two/Both", says=["1 test passed"])
        self.run_it("Sizes", says=["3 tests passed"])
        self.run_it("Sizes.AreEven", says=["3 tests passed"])
        self.run_it("Some/Sizes.AreEven/1", says=["Some/Sizes.AreEven/1", "1 test passed"])
        self.run_it("one/Some/Sizes.AreEven/4", says=["Some/Sizes.AreEven/1", "1 test passed"])
        self.run_it("Some/Sizes.AreEven/9", code=2, says=["one/Some/Sizes.AreEven/6"])

    def test_paths(self):
        self.run_it("packer_test.cc", cwd=self.house / "skein/one", code=1, says=["Sizes.AreEven/0", "6 tests FAILED"])
        self.run_it("skein/one/packer.h", code=1, says=["6 tests FAILED"])
        self.run_it("skein/one/alone.h", code=2, says=["no alone_test.cc", "packer_test.cc"])
        self.run_it("skein/one/nowhere.cc", code=2, says=["there is no file skein/one/nowhere.cc"])

    def test_a_failure_is_exit_code_1(self):
        self.run_it("Packer.Fails", code=1, says=["1 test FAILED"])

    def test_mistakes_are_exit_code_2(self):
        self.run_it(code=2, says=["scripts/test_one.sh 'Packer."])
        self.run_it("Paker.Rows", code=2, says=["no test matches 'Paker.Rows'", "one/Packer.Rows"])
        self.run_it("Rows", says=["1 test passed"])
        self.run_it("rowsof", code=2, says=["one/Packer.RowsOfALane"])
        self.run_it("Both.*", code=2, says=["several programs", "one/Both.AreThere", "two/Both.AreThere"])
        self.run_it("--preset", "fast", "Packer", code=2, says=["no preset 'fast'"])

    def test_a_file_that_is_newer_than_the_build(self):
        self.write("skein/one/newer_test.cc", TEST.format("Newer", "IsFound"))
        self.run_it("Newer.IsFound", says=["1 test passed"])

    def test_scripts(self):
        self.run_it("survival/slow", says=["a script", "1 test passed"])
        self.assertTrue((self.house / "build/built_for_slow").exists())
        self.run_it("--gdb", "survival/slow", code=2, says=["is a script"])

    def test_for_a_debugger(self):
        self.run_it("--no-run", "Packer.Rows*", says=["build/one_test"])
        self.assertEqual((self.house / "build/one_test").resolve(), self.house / "build/skein_one_test")
        self.assertEqual((self.house / "build/one_test.env").read_text().splitlines(),
                         ["ROOM=one", "GTEST_FILTER=Packer.Rows:Packer.RowsOfALane"])


if __name__ == "__main__":
    unittest.main()
