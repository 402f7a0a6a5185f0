// Names for a profiler, of which there is none here.
#pragma once

inline int nvtxRangePushA(const char* /*name*/) { return 0; }
inline int nvtxRangePop() { return 0; }
