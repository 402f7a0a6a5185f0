// Each check passes where all is well, and fails, by name, on the fault that it is there for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "skein/base/error.h"
#include "skein/health/collective_check.h"
#include "skein/health/memory_pattern.h"
#include "skein/health/product_check.h"
#include "skein/health/storage_check.h"
#include "skein/ops/ops.h"
#include "skein/runtime/cpu/cpu_device.h"
#include "tests/comm/ranks.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;

CpuDevice cpu() { return CpuDevice(0, cpu_kernels(), "cpu"); }

// A CPU whose memory reads back otherwise, as `change` says.
class Faulty : public Device {
 public:
  explicit Faulty(std::function<void(void*)> change) : change_(std::move(change)) {}
  const std::string& kind() const override { return cpu_.kind(); }
  const KernelTable& kernels() const override { return cpu_.kernels(); }
  void* allocate(int64_t bytes, const std::string& what) override {
    return cpu_.allocate(bytes, what);
  }
  void release(void* memory, int64_t bytes) override { cpu_.release(memory, bytes); }
  void upload(void* device, const void* host, int64_t bytes) override {
    cpu_.upload(device, host, bytes);
  }
  void download(void* host, const void* device, int64_t bytes) override {
    cpu_.download(host, device, bytes);
    change_(host);
  }
  void fill_zero(void* device, int64_t bytes) override { cpu_.fill_zero(device, bytes); }
  void synchronize() override {}

 private:
  CpuDevice cpu_ = cpu();
  std::function<void(void*)> change_;
};

// First: ranks are forked, which must happen before OpenMP has started threads here.
TEST(CollectiveCheck, IsRightBetweenRanks) {
  comm_test::run_ranks(3, [](const WorldOptions& options) {
    const auto world = make_world(options);
    CpuDevice device = cpu();
    for (const CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce}) {
      const CheckResult result = check_collective(device, *world, kind, 100'000);
      EXPECT_EQ(result.health, Health::kWell) << result.found;
    }
  });
}

TEST(CollectiveCheck, AWrongNumberIsFound) {
  comm_test::run_ranks(2, [](const WorldOptions& options) {
    const auto world = make_world(options);
    Faulty device([](void* host) { static_cast<float*>(host)[7] += 1; });
    const CheckResult result =
        check_collective(device, *world, CollectiveKind::kAllReduce, 100'000);
    EXPECT_EQ(result.health, Health::kSick);
    EXPECT_THAT(result.found, HasSubstr("at element 7 of 25000"));
  });
}

void linear_with_a_flipped_bit(const KernelCall& call) {
  cpu_kernels().at("linear").run(call);
  static_cast<uint32_t*>(call.outputs[0].data)[70] ^= 1 << 20;
}

TEST(ProductCheck, TheProductIsRightToTheBit) {
  CpuDevice device = cpu();
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    const CheckResult result = check_product(device, dtype, 192, 0.01);
    EXPECT_EQ(result.health, Health::kWell) << result.found;
    EXPECT_GT(result.rate, 0);
  }
}

TEST(ProductCheck, OneWrongBitIsFoundAndItsPlaceNamed) {
  KernelTable kernels = cpu_kernels();
  kernels.at("linear").run = linear_with_a_flipped_bit;
  CpuDevice device(0, kernels, "cpu");
  const CheckResult result = check_product(device, DType::kBF16, 64, 0.01);
  EXPECT_EQ(result.health, Health::kSick);
  EXPECT_THAT(result.found, HasSubstr("at row 1, column 6 of product 1"));
  EXPECT_EQ(result.rate, 0);
}

TEST(MemoryPattern, ReadsBackAsItWasWritten) {
  CpuDevice device = cpu();
  const CheckResult result = check_memory_pattern(device, 8 << 20);
  EXPECT_EQ(result.health, Health::kWell) << result.found;
  EXPECT_THAT(result.found, HasSubstr("8.39 MB"));
}

TEST(MemoryPattern, ABitThatIsStuckIsFoundInOneOfBothPatterns) {
  Faulty device([](void* host) { static_cast<unsigned char*>(host)[4097] &= 0x7f; });
  const CheckResult result = check_memory_pattern(device, 8 << 20);
  EXPECT_EQ(result.health, Health::kSick);
  EXPECT_THAT(result.found, HasSubstr("of 8388608"));
}

TEST(StorageCheck, LeavesNothingBehind) {
  const test::TempFolder folder;
  const CheckResult result = check_storage(folder.path() / "not" / "there", 1 << 20);
  EXPECT_EQ(result.health, Health::kWell) << result.found;
  EXPECT_EQ(check_clock(folder.path()).health, Health::kWell);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(StorageCheck, WhatCannotBeWrittenIsSick) {
  const Check check{"storage", [] { return check_storage("/proc", 1 << 20); }};
  const CheckResult result = run_check(check);
  EXPECT_EQ(result.health, Health::kSick);
  EXPECT_THAT(outcome_text(result), HasSubstr("FAILED cannot create /proc/.skein-check"));
}

// From here on the kernel answers this process's fsync with ENOSYS.
void refuse_fsync() {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fsync, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{static_cast<uint16_t>(program.size()), program.data()};
  const bool done = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                    ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
  if (!done) ::_exit(3);
}

TEST(StorageCheck, AFileSystemThatCannotBeAskedIsDoubtfulNotSick) {
  const test::TempFolder folder;
  const auto check_in_child = [&] {
    refuse_fsync();
    const CheckResult storage = check_storage(folder.path(), 1 << 20);
    const CheckResult clock = run_check({"clock", [&] { return check_clock(folder.path()); }});
    fmt::print(stderr, "{}\n{}\n", outcome_text(storage), outcome_text(clock));
    ::_exit(0);
  };
  EXPECT_EXIT(
      check_in_child(), testing::ExitedWithCode(0),
      "doubtful cannot fsync a file that was removed.*training continues\ndoubtful cannot fsync");
}

TEST(ClockCheck, ALittleIsFineMoreIsDoubtfulAMinuteIsNot) {
  EXPECT_EQ(judge_clock(0.9, "x").health, Health::kWell);
  EXPECT_EQ(judge_clock(-1.1, "x").health, Health::kDoubtful);
  EXPECT_EQ(judge_clock(-61, "x").health, Health::kSick);
  EXPECT_THAT(judge_clock(-61, "x").found, HasSubstr("61.00 s behind that of x"));
}

RankHealth with_rate(int rank, double rate) {
  return {"h", rank, {{.name = "product", .found = "right", .rate = rate, .unit = "FLOP/s"}}};
}

TEST(Peers, WhoIsSlowerThanTheMedianOfTheOthersIsNamed) {
  std::vector<RankHealth> ranks = {with_rate(0, 100e9), with_rate(1, 71e9), with_rate(2, 69e9),
                                   with_rate(3, 102e9)};
  compare_with_peers(ranks);
  EXPECT_EQ(ranks[1].results[0].health, Health::kWell);
  EXPECT_EQ(ranks[2].results[0].health, Health::kSick);
  EXPECT_THAT(health_text(ranks),
              HasSubstr("h rank 2    product          FAILED 69 GFLOP/s, right, "
                        "expected at least 70 % of the others' median, 100"));
  EXPECT_FALSE(all_well(ranks));
}

TEST(Health, WhatARankSaysReadsBack) {
  RankHealth rank = with_rate(3, 1e9);
  rank.results[0].health = Health::kDoubtful;
  rank.results[0].advice = "look";
  const Json json = Json::parse(rank_health_to_json(rank).dump());
  EXPECT_EQ(rank_health_to_json(rank_health_from_json(json)), rank_health_to_json(rank));
  const CheckResult thrown =
      run_check({"x", []() -> CheckResult { fail(ErrorCode::kIo, "it broke"); }});
  EXPECT_EQ(thrown.health, Health::kSick);
  EXPECT_EQ(outcome_text(thrown), "FAILED it broke");
}

TEST(Health, WhatCouldNotBeCheckedIsDoubtful) {
  for (const ErrorCode code : {ErrorCode::kNoSpace, ErrorCode::kBusy, ErrorCode::kUnsupported}) {
    const CheckResult result = run_check({"x", [&]() -> CheckResult { fail(code, "held"); }});
    EXPECT_EQ(result.health, Health::kDoubtful);
    EXPECT_EQ(outcome_text(result), "doubtful held");
  }
  const CheckResult no_memory = run_check({"x", []() -> CheckResult { throw std::bad_alloc(); }});
  EXPECT_EQ(no_memory.health, Health::kDoubtful);
}

}  // namespace
}  // namespace skein
