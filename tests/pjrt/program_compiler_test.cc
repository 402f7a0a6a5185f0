// Programs are compiled once, kept, and found again; a plugin that fails is named with its program.
// The plugin is the one under test, behind tests/pjrt/faulty_plugin.
#include "skein/runtime/pjrt/program_compiler.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/runtime/pjrt/executions_in_flight.h"
#include "tests/error_of.h"
#include "tests/pjrt/plugin.h"
#include "tests/temp_folder.h"

namespace skein::pjrt_test {
namespace {

using stablehlo::Element;
using test::error_of;
using test::TempFolder;

// y = x + x + ... of eight numbers, `terms` in all.
std::string sum_text(int terms) {
  std::string text = "module @m {\nfunc.func @main(%x0: tensor<8xf32>) -> tensor<8xf32> {\n";
  for (int i = 1; i < terms; ++i) {
    text += fmt::format("%x{} = stablehlo.add %x{}, %x0 : tensor<8xf32>\n", i, i - 1);
  }
  return text + fmt::format("return %x{} : tensor<8xf32>\n}}\n}}\n", terms - 1);
}

class Compiler : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(faulty_plugin().empty()) << "this test is built with its plugin";
    ::setenv("SKEIN_FAULTY_PJRT_PLUGIN", plugin_path(SKEIN_SOURCE_DIR).c_str(), 1);
    ::unsetenv("SKEIN_FAULTY_PJRT");
    client_ = std::make_unique<PjrtClient>(options());
  }
  void TearDown() override { ::unsetenv("SKEIN_FAULTY_PJRT"); }

  static PjrtOptions options() { return {.plugin = faulty_plugin()}; }
  PjrtOptions kept() const {
    PjrtOptions options = this->options();
    options.compiler.cache_folder = folder_ / "cache";
    options.compiler.cache_bytes = 1 << 30;
    return options;
  }
  // The `count`th call of a kind fails from here on.
  void plant(const std::string& fault, int count) {
    const std::string counts = (folder_ / fmt::format("count-{}", num_faults_++)).string();
    ::setenv("SKEIN_FAULTY_PJRT", fmt::format("{} {} {}", fault, count, counts).c_str(), 1);
  }
  PjrtBuffer started(const PjrtExecutable& executable, const PjrtBuffer& x) const {
    return std::move(client_->execute(executable, {{x.get()}}, 1)[0][0]);
  }
  PjrtBuffer ones() const {
    const std::vector<float> ones(8, 1);
    return client_->put(ones.data(), {Element::kF32, {8}});
  }
  float first_of(const PjrtBuffer& y) const {
    std::vector<float> values(8);
    client_->get(y, values.data(), 32);
    return values[0];
  }
  static bool has(const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
  }

  const TempFolder folder_;
  std::unique_ptr<PjrtClient> client_;
  int num_faults_ = 0;
};

TEST_F(Compiler, MakesEachTextOnce) {
  ProgramCompiler compiler(*client_, options());
  EXPECT_EQ(compiler.compiled(), "");
  const auto first = compiler.executable("sum", sum_text(3), 1);
  EXPECT_EQ(compiler.executable("again", sum_text(3), 1), first);
  EXPECT_NE(compiler.executable("other", sum_text(4), 1), first);
  EXPECT_TRUE(compiler.compiled().starts_with("compiled 2 programs for "));
  EXPECT_FALSE(has(compiler.compiled(), "from the cache"));
}

TEST_F(Compiler, FindsWhatAnEarlierStartCompiled) {
  ProgramCompiler(*client_, kept()).executable("sum", sum_text(5), 1);
  plant("compile", 1);  // and would compile nothing
  ProgramCompiler second(*client_, kept());
  const auto executable = second.executable("sum", sum_text(5), 1);
  EXPECT_EQ(first_of(started(*executable, ones())), 5);
  EXPECT_TRUE(has(second.compiled(), ", 1 of them from the cache (" + (folder_ / "cache").string()))
      << second.compiled();
}

TEST_F(Compiler, CompilesWhatAnythingElseIsNeededOf) {
  ProgramCompiler(*client_, kept()).executable("sum", sum_text(5), 1);
  PjrtOptions quick = kept();
  quick.compiler.level = "0";
  ProgramCompiler other(*client_, quick);
  other.executable("sum", sum_text(5), 1);
  EXPECT_TRUE(has(other.compiled(), ", 0 of them from the cache")) << other.compiled();
  ::setenv("XLA_FLAGS", "--xla_cpu_enable_fast_min_max=false", 1);
  ProgramCompiler with_flags(*client_, kept());
  with_flags.executable("sum", sum_text(5), 1);
  ::unsetenv("XLA_FLAGS");
  EXPECT_TRUE(has(with_flags.compiled(), ", 0 of them from the cache")) << with_flags.compiled();
}

TEST_F(Compiler, CompilesAgainWhatThePluginRefuses) {
  ProgramCompiler(*client_, kept()).executable("sum", sum_text(5), 1);
  plant("load", 1);
  ProgramCompiler second(*client_, kept());
  EXPECT_EQ(first_of(started(*second.executable("sum", sum_text(5), 1), ones())), 5);
  EXPECT_TRUE(has(second.compiled(), ", 0 of them from the cache")) << second.compiled();
  ProgramCompiler third(*client_, kept());
  third.executable("sum", sum_text(5), 1);
  EXPECT_TRUE(has(third.compiled(), ", 1 of them from the cache")) << third.compiled();
}

TEST_F(Compiler, GoesOnWhereThePluginCannotWriteExecutables) {
  plant("serialize", 1);
  ProgramCompiler compiler(*client_, kept());
  EXPECT_EQ(first_of(started(*compiler.executable("sum", sum_text(5), 1), ones())), 5);
  compiler.executable("sum", sum_text(6), 1);  // which is not tried again
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
}

TEST_F(Compiler, NamesTheProgramThatTakesTooMuchMemory) {
  plant("compile", 2);
  ProgramCompiler compiler(*client_, options());
  compiler.executable("forward", sum_text(3), 1);
  const std::string text = sum_text(40);
  const std::string error = error_of([&] { compiler.executable("backward", text, 1); });
  EXPECT_TRUE(has(error, "the program backward, " + format_bytes(std::ssize(text)))) << error;
  EXPECT_TRUE(has(error, "no memory is left for the compiler")) << error;
}

TEST_F(Compiler, SeveralJobsMakeThemAll) {
  PjrtOptions several = kept();
  several.compiler.num_jobs = 3;
  std::vector<std::string> names;
  several.compiler.on_made = [&](const CompiledProgram& program) {
    EXPECT_FALSE(program.is_from_cache);
    names.push_back(program.name);
  };
  ProgramCompiler compiler(*client_, several);
  std::vector<ProgramCompiler::Executable> executables;
  for (int i = 1; i <= 8; ++i) {
    executables.push_back(compiler.start(fmt::format("sum{}", i), sum_text(i), 1));
  }
  for (int i = 1; i <= 8; ++i) {
    const PjrtExecutable& executable = *executables[static_cast<size_t>(i) - 1].get();
    EXPECT_EQ(first_of(started(executable, ones())), i);
  }
  EXPECT_TRUE(compiler.compiled().starts_with("compiled 8 programs"));
  EXPECT_EQ(names.size(), 8u);
}

TEST_F(Compiler, SeveralJobsSayWhatWentWrong) {
  PjrtOptions several = options();
  several.compiler.num_jobs = 3;
  plant("compile", 4);
  ProgramCompiler compiler(*client_, several);
  for (int i = 1; i <= 8; ++i) compiler.start(fmt::format("sum{}", i), sum_text(i), 1);
  EXPECT_TRUE(has(error_of([&] { compiler.compiled(); }), "no memory is left for the compiler"));
}

TEST_F(Compiler, RefusesALevelThatIsNone) {
  for (const char* level : {"4", "fast", "=1", "a=", "a=1,,b=2", "a=1,"}) {
    PjrtOptions wrong = options();
    wrong.compiler.level = level;
    const std::string error = error_of([&] { ProgramCompiler(*client_, wrong); });
    EXPECT_TRUE(has(error, fmt::format("device.optimization_level is \"{}\"", level))) << error;
  }
  PjrtOptions unknown = options();
  unknown.compiler.level = "xla_no_such_option=true";
  ProgramCompiler compiler(*client_, unknown);
  const std::string error = error_of([&] { compiler.executable("sum", sum_text(2), 1); });
  EXPECT_TRUE(has(error, "xla_no_such_option")) << error;
}

TEST_F(Compiler, TakesEveryLevelAndOptionsOfTheCompiler) {
  for (const char* level : {"0", "1", "2", "3", "xla_llvm_disable_expensive_passes=true",
                            "xla_backend_optimization_level=1,xla_cpu_prefer_vector_width=128"}) {
    PjrtOptions options = this->options();
    options.compiler.level = level;
    ProgramCompiler compiler(*client_, options);
    EXPECT_EQ(first_of(started(*compiler.executable("sum", sum_text(7), 1), ones())), 7) << level;
  }
}

// The host hears of an error when it waits, which is when more are in flight than it may start.
TEST_F(Compiler, AnErrorNamesTheProgramThatFailedFirst) {
  ProgramCompiler compiler(*client_, options());
  const auto sum = compiler.executable("sum", sum_text(2), 1);
  for (const int most : {0, 1, 3}) {
    plant("result", 2);
    ExecutionsInFlight in_flight(most);
    PjrtBuffer x = ones();
    const std::vector<std::string> ops = {"ops of 0", "ops of 1", "ops of 2", "ops of 3",
                                          "ops of 4", "ops of 5", "ops of 6", "ops of 7"};
    int num_started = 0;
    const std::string error = error_of([&] {
      for (const std::string& name : ops) {
        x = started(*sum, x);
        ++num_started;
        in_flight.started(name, client_->when_ready(x));
      }
    });
    EXPECT_EQ(num_started, 2 + most);
    EXPECT_TRUE(error.starts_with("ops of 1: ")) << error;
    EXPECT_TRUE(has(error, "the core is on fire")) << error;
    EXPECT_EQ(in_flight.failure(), error);
    EXPECT_FALSE(error_of([&] { first_of(x); }).empty());
  }
}

TEST_F(Compiler, WhatIsInFlightEndsInOrder) {
  ProgramCompiler compiler(*client_, options());
  const auto sum = compiler.executable("sum", sum_text(2), 1);
  const std::string name = "sum";
  ExecutionsInFlight in_flight(3);
  PjrtBuffer x = ones();
  for (int i = 0; i < 10; ++i) {
    x = started(*sum, x);
    in_flight.started(name, client_->when_ready(x));
  }
  in_flight.finish();
  EXPECT_EQ(in_flight.failure(), "");
  EXPECT_EQ(first_of(x), 1024);
}

}  // namespace
}  // namespace skein::pjrt_test
