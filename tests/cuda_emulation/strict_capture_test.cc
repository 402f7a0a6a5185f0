// The emulation refuses more than a GPU: work on a stream beside the capture, which a GPU would run
// at once. Ours always belongs to the capture, so that a fork was forgotten.
#include "tests/cuda/capture.h"

namespace skein {
namespace {

using StrictCapture = CaptureTest;

TEST_F(StrictCapture, RefusesAStreamThatDoesNotFork) {
  begin();
  EXPECT_NE(copy_beside(), cudaSuccess);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(StrictCapture, RefusesAnEventOfBefore) {
  EXPECT_EQ(cudaEventRecord(begun_, stream_), cudaSuccess);
  begin();
  EXPECT_NE(cudaStreamWaitEvent(beside_, begun_, 0), cudaSuccess);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

}  // namespace
}  // namespace skein
