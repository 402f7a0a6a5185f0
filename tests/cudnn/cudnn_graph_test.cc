// What the real cuDNN says to the graphs of attention, and the workspace that it asks for. There
// is no GPU: it plans for the properties of one, with a driver (driver.cc) that has no device.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "skein/ops/attention/cuda/attention_cudnn_graph_cuda.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace skein::attention_cuda {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// An H100 in the form that cuDNN 9.19 reads (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).
constexpr const char* kH100 = R"({"maxGridSize": [2147483647, 65535, 65535],
  "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536, "multiProcessorCount": 132,
  "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
  "supportCoopLaunch": 1, "totalGlobalMem": 85029158912, "smClockRateKHz": 1980000,
  "memClockRateKHz": 2619000, "l2CacheSize": 52428800, "cudaDeviceId": 0, "deviceVer": 900,
  "driverVer": 13000, "deviceName": "NVIDIA H100 80GB HBM3"})";

struct Sizes {
  int num_sequences, sequence_length, heads, kv_heads, head_dim;
};

class CudnnGraph : public testing::TestWithParam<Sizes> {
 protected:
  void SetUp() override {
    fe::cudnn_dlhandle = dlopen("libcudnn.so.9", RTLD_NOW);
    if (fe::cudnn_dlhandle == nullptr) GTEST_SKIP() << "no cuDNN to ask: " << dlerror();
    if (fe::detail::get_backend_version() < 91200) GTEST_SKIP() << "cuDNN is older than 9.12";
    const std::string text = kH100;
    h100_ = std::make_shared<fe::DeviceProperties>();
    fe::error_t read = h100_->deserialize({text.begin(), text.end()});
    ASSERT_TRUE(read.is_good()) << read.get_message();
  }

  // q, k and v are columns of one matrix, and so are their gradients; lse has rows of all heads.
  Description description(bool backward) {
    const Sizes& sizes = GetParam();
    problem_.num_sequences = sizes.num_sequences;
    problem_.sequence_length = sizes.sequence_length;
    problem_.heads = sizes.heads;
    problem_.kv_heads = sizes.kv_heads;
    problem_.head_dim = sizes.head_dim;
    problem_.documents = false;
    const int64_t q_cols = int64_t{sizes.heads} * sizes.head_dim;
    const int64_t all_cols = q_cols + int64_t{2} * sizes.kv_heads * sizes.head_dim;
    for (const Operand operand : {kQ, kK, kV, kDq, kDk, kDv}) table_.strides[operand] = all_cols;
    table_.strides[kO] = table_.strides[kGrad] = q_cols;
    table_.strides[kLse] = sizes.heads;
    return {problem_, table_, backward};
  }

  int64_t workspace(const Description& description) {
    fe::graph::Graph graph;
    graph.set_sm_version(90).set_device_properties(h100_);
    description.add_to(graph);
    fe::error_t built = graph.build({fe::HeurMode_t::A});
    EXPECT_TRUE(built.is_good()) << built.get_message();
    int64_t bytes = -1;
    fe::error_t sized = graph.get_workspace_size(bytes);
    EXPECT_TRUE(sized.is_good()) << sized.get_message();
    return bytes;
  }

  std::shared_ptr<fe::DeviceProperties> h100_;
  Problem problem_;
  DocumentRows table_;
};

TEST_P(CudnnGraph, ForwardOfWholeSequencesIsPlanned) {
  const Description forward = description(false);
  const int64_t needed = workspace(forward);
  EXPECT_GE(needed, 0);
  EXPECT_LE(needed, forward.workspace_bytes());
}

// The plan of memory is made without the library: it must not be less than what that asks for, and
// not much more.
TEST_P(CudnnGraph, BackwardOfWholeSequencesFitsWhatIsPlanned) {
  const Description backward = description(true);
  for (const bool repeatable : {true, false}) {
    problem_.repeatable = repeatable;
    const int64_t needed = workspace(backward);
    EXPECT_GT(needed, 0);
    EXPECT_LE(needed, backward.workspace_bytes());
    if (GetParam().sequence_length >= 1024) {
      EXPECT_GE(needed + needed / 20 + 2 * kMiB, backward.workspace_bytes());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CudnnGraph,
                         testing::Values(Sizes{1, 4096, 32, 32, 128},  // Llama 2 7B
                                         Sizes{2, 4096, 32, 32, 128},  //
                                         Sizes{1, 4096, 8, 1, 128},    // a rank of 70B
                                         Sizes{1, 8192, 32, 8, 128},   // Llama 3 8B
                                         Sizes{3, 1000, 12, 12, 64},   // no whole blocks
                                         Sizes{5, 130, 6, 2, 96},      //
                                         Sizes{1, 2048, 16, 16, 256}),
                         [](const testing::TestParamInfo<Sizes>& info) {
                           const Sizes& sizes = info.param;
                           return std::to_string(sizes.num_sequences) + "x" +
                                  std::to_string(sizes.sequence_length) + "_heads_" +
                                  std::to_string(sizes.heads) + "_" +
                                  std::to_string(sizes.kv_heads) + "_of_" +
                                  std::to_string(sizes.head_dim);
                         });

}  // namespace
}  // namespace skein::attention_cuda
