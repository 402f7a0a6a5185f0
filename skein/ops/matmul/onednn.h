// oneDNN's matrix product, of oneDNN 2 (Debian 12) and 3 (Debian 13):
// version 3 has no descriptor of an operation beside that of a primitive.
//
// Errors  dnnl::error{dnnl_unimplemented} where oneDNN has no such product for this CPU
#pragma once

#include <dnnl.hpp>

namespace skein {

// c = a * b, or what `attributes` makes of it.
inline dnnl::matmul::primitive_desc onednn_matmul(const dnnl::engine& engine,
                                                  const dnnl::memory::desc& a,
                                                  const dnnl::memory::desc& b,
                                                  const dnnl::memory::desc& c,
                                                  const dnnl::primitive_attr& attributes = {}) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul::primitive_desc(engine, a, b, c, attributes);
#else
  return dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), attributes, engine);
#endif
}

}  // namespace skein
