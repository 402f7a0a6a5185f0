// Programs that mean harm: what each tries is held, and nothing of it is left.
//
// A program of these tests gets to its end, and so passes, only if what it tries succeeds, unless
// the test says otherwise.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <thread>

#include "tests/sandbox_testing.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::naming;
using test::num_processes_named;
using test::TempFolder;

class HostileProgram : public test::SandboxTest<10> {
 protected:
  static std::string reason(const std::string& program) { return sandbox_->run(program).reason; }
  // Of programs that have no end, all at once.
  static void expect_timed_out(const std::vector<std::string>& programs) {
    const std::vector<ProgramResult> results = PythonSandbox(2).run_all(programs, 8);
    for (size_t i = 0; i < programs.size(); ++i) {
      EXPECT_EQ(results[i].reason, "timed out after 2 s") << programs[i];
    }
  }
  // Fails unless the program is stopped by an exception of that type.
  static void expect_held(const std::string& program, const std::string& exception) {
    const std::string found = reason(program);
    EXPECT_EQ(found.rfind("failed: " + exception, 0), 0U) << program << "\n" << found;
  }
};

bool waits_until(const std::function<bool()>& condition, int seconds = 30) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

TEST_F(HostileProgram, AForkBombIsCountedAndEnds) {
  const std::string name = "bomb-" + std::to_string(::getpid() % 10000);
  std::atomic<bool> has_ended = false;
  std::thread bomb([&] {
    expect_timed_out({naming(name) + "import os\n"
                                     "while True:\n"
                                     "    try: os.fork()\n"
                                     "    except OSError: pass\n"});
    has_ended = true;
  });
  int most = 0;
  while (!has_ended) most = std::max(most, num_processes_named(name));
  bomb.join();
  EXPECT_GT(most, 10) << "the bomb was seen";
  EXPECT_LE(most, ConfinedLimits().num_processes);
  EXPECT_EQ(num_processes_named(name), 0);
}

TEST_F(HostileProgram, WhatRunsInTheBackgroundIsKilled) {
  const std::string name = "left-" + std::to_string(::getpid() % 10000);
  const std::string program =
      naming(name) +
      "import os, signal, time\n"
      "for number in range(1, 32):\n"
      "    if number not in (9, 19): signal.signal(number, signal.SIG_IGN)\n"
      "for _ in range(3):\n"
      "    if os.fork() == 0:\n"
      "        os.setsid()\n"
      "        if os.fork() == 0:\n"
      "            os.closerange(0, 64)\n"
      "            time.sleep(1000)\n"
      "        os._exit(0)\n";
  EXPECT_EQ(reason(program + "time.sleep(0.2)"), "passed");
  EXPECT_EQ(num_processes_named(name), 0);
  std::thread waits([&] { expect_timed_out({program + "time.sleep(1000)"}); });
  EXPECT_TRUE(waits_until([&] { return num_processes_named(name) == 4; }));
  waits.join();
  EXPECT_EQ(num_processes_named(name), 0);
}

// The process that runs the sandbox is killed: its programs end.
TEST_F(HostileProgram, NoProgramOutlivesThisProcess) {
  const std::string name = "orphan-" + std::to_string(::getpid() % 10000);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const PythonSandbox sandbox(1000);
    sandbox.run(naming(name) + "import os, time\nos.fork()\nwhile True: time.sleep(1)");
    ::_exit(0);
  }
  EXPECT_TRUE(waits_until([&] { return num_processes_named(name) == 2; }));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_TRUE(waits_until([&] { return num_processes_named(name) == 0; }));
}

TEST_F(HostileProgram, ProgramsWithoutEndAreStopped) {
  expect_timed_out({
      "while True: pass",
      "import os\nos.kill(os.getpid(), 19)",  // SIGSTOP
      "x = 10 ** 10 ** 10",
      "import os\nwhile True: os.write(1, b'x' * 99999); os.write(2, b'y' * 99999)",
      "import os\nwhile True: os.write(4, b'z' * 99999)",
      "while True: print('x' * 99999)",
  });
}

TEST_F(HostileProgram, MemoryIsLimited) {
  expect_held("x = []\nwhile True: x.append(bytes(1 << 26))", "MemoryError");
  expect_held("import mmap\nx = mmap.mmap(-1, 2 << 30)", "OSError: [Errno 12]");
  expect_held(
      "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(): f()\nimport threading\n"
      "threading.stack_size(1 << 30)\nthreading.Thread(target=f).start()",
      "");
}

TEST_F(HostileProgram, FilesAreLimited) {
  expect_held("f = open('large', 'wb')\nfor _ in range(10240): f.write(bytes(1 << 20))", "OSError");
  expect_held(
      "import os\n"
      "for i in range(1000):\n"
      "    with open(str(i), 'wb') as f: f.write(bytes(10 << 20))\n",
      "OSError: [Errno 28]");
  expect_held("for i in range(100000): open(str(i), 'w').close()", "OSError: [Errno 28]");
  expect_held("x = [open('/dev/null') for _ in range(100)]", "OSError: [Errno 24]");
  EXPECT_EQ(reason("import os\nassert os.listdir('.') == [] and os.getcwd() == '/tmp'"), "passed")
      << "nothing is left for the next program";
}

TEST_F(HostileProgram, FilesOfThisMachineAreNotThere) {
  const TempFolder folder;
  const fs::path secret = folder / "secret";
  std::ofstream(secret) << "secret";
  ASSERT_TRUE(fs::exists(secret));
  const char* const home = std::getenv("HOME");
  std::string paths;
  for (const std::string& path :
       {secret.string(), fs::current_path().string(), std::string(home == nullptr ? "/mnt" : home),
        std::string("/etc/shadow"), std::string("/etc/passwd"), std::string("/proc/self/environ"),
        std::string("/proc/1/root"), std::string("/sys/kernel"), std::string("/var/log"),
        std::string("/dev/mem"), std::string("/dev/kmsg"), std::string("/run")}) {
    paths += fmt::format("{:?}, ", path);
  }
  EXPECT_EQ(reason("import os\npaths = [" + paths + "]\n" + R"(
def is_there(path):
    try:
        return os.path.exists(path) and os.listdir(path) != []
    except NotADirectoryError:
        return True

for i, path in enumerate(paths):
    os.symlink(path, str(i))
    os.symlink('../' * 50 + path[1:], 'up' + str(i))
    for way in (path, str(i), 'up' + str(i), '/tmp/' + '../' * 50 + path[1:]):
        # Folders on the way to Python's own are there, with that alone in them.
        if is_there(way) and path not in os.__file__: raise SystemExit(way)
assert is_there('/usr/bin')
)"),
            "passed");
  expect_held(
      "import os\nassert set(os.listdir('/')) - {'bin', 'dev', 'etc', 'lib', 'lib32', "
      "'lib64', 'libx32', 'sbin', 'tmp', 'usr'} - set(os.__file__.split('/'))",
      "AssertionError");
  EXPECT_EQ(reason("import os\nassert os.listdir('/etc') in ([], ['ld.so.cache'])"), "passed");
}

TEST_F(HostileProgram, NothingOutsideOfTmpIsWritten) {
  for (const std::string& path : std::vector<std::string>{"/x", "/usr/x", "/usr/bin/x", "/etc/x",
                                                          "/dev/x", "/etc/ld.so.cache"}) {
    expect_held(fmt::format("open({:?}, 'w')", path), "");
  }
  expect_held("import os\nos.remove('/etc/ld.so.cache')", "OSError");
  expect_held("import os\nos.mkdir('/y')", "OSError");
  expect_held("import os\nos.chmod('/usr', 0o777)", "OSError");
  expect_held("import os, sys\nos.rename(sys.executable, '/tmp/python')", "OSError");
  expect_held("import os\nos.mknod('disk', 0o60666, os.makedev(8, 0))", "PermissionError");
}

TEST_F(HostileProgram, TheNetworkIsOutOfReach) {
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(server, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(server, 4), 0);
  ASSERT_EQ(::getsockname(server, reinterpret_cast<sockaddr*>(&address), &size), 0);
  expect_held(fmt::format("import socket\nsocket.create_connection(('127.0.0.1', {}), 1)",
                          ntohs(address.sin_port)),
              "OSError");
  pollfd waiting{server, POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 0) << "somebody has connected";
  ::close(server);

  // A name without a file, which only a network namespace holds back.
  const int local = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = fmt::format("skein-test-{}", ::getpid());
  std::memcpy(name.sun_path + 1, text.data(), text.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  ASSERT_EQ(::bind(local, reinterpret_cast<sockaddr*>(&name), length), 0);
  ASSERT_EQ(::listen(local, 4), 0);
  expect_held(fmt::format("import socket\nsocket.socket(socket.AF_UNIX).connect('\\0{}')", text),
              "ConnectionRefusedError");
  ::close(local);
  for (const int family : {AF_VSOCK, AF_NETLINK, AF_PACKET, AF_ALG}) {
    expect_held(fmt::format("import socket\nsocket.socket({}, socket.SOCK_RAW)", family),
                "OSError: [Errno 97]");
  }
}

TEST_F(HostileProgram, OtherProcessesAreOutOfReach) {
  // Each is done without harm: the killers end by themselves at most, their neighbours pass.
  const std::string neighbour = "import time\ntime.sleep(0.3)";
  const std::vector<std::string> programs = {
      neighbour,
      "import os\nos.kill(os.getppid(), 9)",
      "import os\ntry: os.kill(-1, 9)\nexcept ProcessLookupError: pass",
      neighbour,
      "import os\nfor pid in range(3, 70000):\n    try: os.kill(pid, 9)\n"
      "    except ProcessLookupError: pass",
      neighbour,
      fmt::format("import os\nos.kill({}, 0)", ::getpid()),
  };
  const std::vector<ProgramResult> results = sandbox_->run_all(programs, 4);
  for (const size_t i : {0U, 1U, 3U, 5U}) EXPECT_EQ(results[i].reason, "passed") << programs[i];
  EXPECT_EQ(results[6].reason, "failed: ProcessLookupError: [Errno 3] No such process");
  EXPECT_EQ(reason("import os\nassert (os.getpid(), os.getppid()) == (2, 1)"), "passed");
}

TEST_F(HostileProgram, SystemCallsOfAttacksAreRefused) {
  const std::string call =
      "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
      "def call(*arguments):\n"
      "    if libc.syscall(*arguments) < 0:\n"
      "        raise SystemExit(ctypes.get_errno())\n";
  const auto held = [&](const std::string& arguments, int error) {
    expect_held(call + "call(" + arguments + ")", fmt::format("SystemExit: {}", error));
  };
  held(fmt::format("{}, 16, 1, 0, 0", SYS_ptrace), EPERM);
  held(fmt::format("{}, 1, 0, 0, 0, 0, 0", SYS_process_vm_readv), EPERM);
  held(fmt::format("{}, {}", SYS_unshare, CLONE_NEWUSER), EPERM);
  held(fmt::format("{}, {}, 0, 0, 0, 0", SYS_clone, CLONE_NEWUSER | SIGCHLD), EPERM);
  held(fmt::format("{}, 0, 88", SYS_clone3), ENOSYS);
  held(fmt::format("{}, b'none', b'/tmp', b'tmpfs', 0, 0", SYS_mount), EPERM);
  held(fmt::format("{}, b'/', 2", SYS_umount2), EPERM);
  held(fmt::format("{}, b'/tmp'", SYS_chroot), EPERM);
  held(fmt::format("{}, 0, 0, 0", SYS_bpf), EPERM);
  held(fmt::format("{}, 1, 0", SYS_io_uring_setup), EPERM);
  held(fmt::format("{}, 0, 0, 0, 0, 0", SYS_keyctl), EPERM);
  held(fmt::format("{}, 0", SYS_userfaultfd), EPERM);
  expect_held("import os\nos.setuid(0)", "OSError");
  expect_held("import os\nos.setgroups([0])", "PermissionError");
}

TEST_F(HostileProgram, HasNoRights) {
  EXPECT_EQ(reason("import ctypes, os\nlibc = ctypes.CDLL(None)\n"
                   "assert os.getuid() == os.geteuid() == 1000 and os.getgid() == 1000\n"
                   "assert libc.prctl(39, 0, 0, 0, 0) == 1\n"   // no_new_privs
                   "assert libc.prctl(23, 21, 0, 0, 0) == 0\n"  // CAP_SYS_ADMIN
                   "assert os.uname().nodename == 'sandbox'\n"
                   "assert os.getsid(0) == 1"),
            "passed");
  if (::geteuid() == 0) {
    EXPECT_EQ(reason("import os\nassert os.getgroups() == []"), "passed");
  }
}

TEST_F(HostileProgram, GetsNothingOfThisProcess) {
  ::setenv("SKEIN_TEST_SECRET", "secret", 1);
  const int open = ::open("/proc/self/maps", O_RDONLY);  // not closed on exec
  EXPECT_EQ(reason("import os\n"
                   "assert set(os.environ) == {'HOME', 'LANG', 'PATH', 'PYTHONHASHSEED'}\n"
                   "found = []\n"
                   "for file in range(1024):\n"
                   "    try: os.fstat(file); found.append(file)\n"
                   "    except OSError: pass\n"
                   "assert found == [0, 1, 2, 4], found"),
            "passed");
  ::close(open);
  ::unsetenv("SKEIN_TEST_SECRET");
}

TEST_F(HostileProgram, ClosedOutputsHoldNothingUp) {
  EXPECT_EQ(reason("import os\nos.closerange(0, 3)"), "passed");
  EXPECT_EQ(sandbox_->run("import os\nos.closerange(0, 64)").verdict, ProgramVerdict::kFailed);
}

// As an ordinary user, where the tests run as root.
TEST_F(HostileProgram, IsHeldForAnOrdinaryUserToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "the other tests run as an ordinary user";
  if (::access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no /usr/bin/python3";
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setenv("PATH", "/usr/bin:/bin", 1);
    if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) ::_exit(3);
    ::prctl(PR_SET_DUMPABLE, 1);  // as after an exec
    if (!test::may_make_namespaces()) ::_exit(77);
    const std::string bomb =
        "import os, time\nmade = 0\n"
        "try:\n  while True:\n    if os.fork() == 0: time.sleep(100)\n    made += 1\n"
        "except BlockingIOError: pass\nassert made > 20 and made < 32, made";
    const Result<bool> held = try_run([&] {
      const PythonSandbox sandbox(3);
      return sandbox.run("x = 1").reason == "passed" && sandbox.run(bomb).reason == "passed" &&
             sandbox.run("open('/etc/passwd')").reason.find("FileNotFound") != std::string::npos;
    });
    ::_exit(held.ok() && Result<bool>(held).value() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "ordinary users may not make namespaces here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace skein
