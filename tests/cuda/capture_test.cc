// What CUDA takes and refuses of captures over several streams: the emulation does as a GPU does.
#include "tests/cuda/capture.h"

namespace skein {
namespace {

using Capture = CaptureTest;

TEST_F(Capture, TakesWorkOfAStreamThatForksAndJoins) {
  begin();
  EXPECT_EQ(fork(), cudaSuccess);
  EXPECT_EQ(copy_beside(), cudaSuccess);
  EXPECT_EQ(join(), cudaSuccess);
  EXPECT_EQ(end(), cudaSuccess);
}

TEST_F(Capture, RefusesWorkThatNobodyWaitsFor) {
  begin();
  EXPECT_EQ(fork(), cudaSuccess);
  EXPECT_EQ(join(), cudaSuccess);
  EXPECT_EQ(copy_beside(), cudaSuccess);
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
}

TEST_F(Capture, RefusesToWaitForAnEventOfBefore) {
  EXPECT_EQ(cudaEventRecord(begun_, stream_), cudaSuccess);
  begin();
  EXPECT_NE(cudaStreamWaitEvent(stream_, begun_, 0), cudaSuccess);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(Capture, ItsEventsAreOfNoUseAfterwards) {
  begin();
  EXPECT_EQ(fork(), cudaSuccess);
  EXPECT_EQ(join(), cudaSuccess);
  EXPECT_EQ(end(), cudaSuccess);
  // cudaErrorCapturedEvent by the documentation, cudaErrorInvalidValue by driver 580.
  EXPECT_NE(cudaStreamWaitEvent(stream_, ended_, 0), cudaSuccess);
}

}  // namespace
}  // namespace skein
