// A CUDA driver without a device, for planning with the real cuDNN where there is no GPU: it takes
// kernels as loaded, and refuses everything else. Its functions are those that cuDNN looks for
// when it opens libcuda.so.1.
namespace {
char loaded;
constexpr int kSuccess = 0, kStubLibrary = 34;  // CUDA_SUCCESS, CUDA_ERROR_STUB_LIBRARY
}  // namespace

#define LOADS(name)               \
  extern "C" int name(void** to); \
  int name(void** to) {           \
    *to = &loaded;                \
    return kSuccess;              \
  }
#define RETURNS(name, value) \
  extern "C" int name();     \
  int name() { return value; }
#define TAKES(name) RETURNS(name, kSuccess)
#define REFUSES(name) RETURNS(name, kStubLibrary)

LOADS(cuLibraryLoadData)
LOADS(cuLibraryGetKernel)
LOADS(cuKernelGetFunction)
LOADS(cuModuleLoadData)
LOADS(cuModuleGetFunction)
TAKES(cuFuncSetAttribute)
TAKES(cuLibraryUnload)
TAKES(cuKernelSetAttribute)
REFUSES(cuCtxGetCurrent)
REFUSES(cuCtxGetDevice)
REFUSES(cuCtxGetLimit)
REFUSES(cuCtxPopCurrent)
REFUSES(cuCtxPushCurrent)
REFUSES(cuDeviceGet)
REFUSES(cuDeviceGetAttribute)
REFUSES(cuDeviceGetCount)
REFUSES(cuDevicePrimaryCtxRelease)
REFUSES(cuDevicePrimaryCtxReset)
REFUSES(cuDevicePrimaryCtxRetain)
REFUSES(cuDriverGetVersion)
REFUSES(cuFuncGetAttribute)
REFUSES(cuGetErrorName)
REFUSES(cuGetErrorString)
REFUSES(cuInit)
REFUSES(cuKernelGetAttribute)
REFUSES(cuLaunchCooperativeKernel)
REFUSES(cuLaunchKernel)
REFUSES(cuLaunchKernelEx)
REFUSES(cuLibraryLoadFromFile)
REFUSES(cuLinkAddData)
REFUSES(cuLinkAddData_v2)
REFUSES(cuLinkAddFile_v2)
REFUSES(cuLinkComplete)
REFUSES(cuLinkCreate)
REFUSES(cuLinkCreate_v2)
REFUSES(cuLinkDestroy)
REFUSES(cuMemcpyDtoH_v2)
REFUSES(cuModuleGetGlobal_v2)
REFUSES(cuModuleLoadDataEx)
REFUSES(cuModuleLoadFatBinary)
REFUSES(cuModuleUnload)
REFUSES(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSES(cuOccupancyMaxPotentialClusterSize)
REFUSES(cuStreamGetCtx)
REFUSES(cuStreamSynchronize)
REFUSES(cuTensorMapEncodeTiled)
