// C (+)= sum over terms of A_t B_t (+ bias): the matrix product of the CPU kernels.
//
// Operands    f32 or bf16; C f32 or bf16. Any row stride; no pointer needs alignment.
// Accumulation fp32, in order of the summed dim; rounded once when stored. A C that counts as zero
//             (from_zero) gets the bits that one of zeros would, but for the sign of a zero. bf16
//             on a CPU with bf16 dot products: subnormals count as zero.
// Threads     OpenMP inside. The result does not depend on their number.
// Memory      `scratch` of matmul_scratch_bytes(); nothing is allocated.
// Method      B is packed once into panels that the inner loop streams (Goto and van de Geijn,
//             "Anatomy of High-Performance Matrix Multiplication", 2008); A is read in place unless
//             its summed dim is the outer one.
#pragma once

#include <array>

#include "skein/ops/matmul/matmul_kernel.h"

namespace skein {

inline constexpr int kMaxMatmulTerms = 8;
// AMX sums so many products, counted from a term's begin, before it adds them: cutting a term in
// two changes no bit at multiples of it alone.
inline constexpr int64_t kMatmulDepthGroup = 32;

struct MatmulTerm {
  int64_t depth = 0;
  MatmulOperand a;
  MatmulOperand b;
};

struct Matmul {
  DType dtype = DType::kF32;  // of A and B
  int64_t rows = 0;
  int64_t cols = 0;
  int num_terms = 0;
  std::array<MatmulTerm, kMaxMatmulTerms> terms;
  MatmulStore c;
  // B as pack_matmul_b left it, of a product with one term; null: B is packed by each product.
  const uint32_t* packed_b = nullptr;
};

// With the best kernel for this CPU; pointers may be null for the size.
int64_t matmul_scratch_bytes(const Matmul& matmul);
void run_matmul(const Matmul& matmul, void* scratch);

// For a B that does not change (a weight): packs it once, for products of any number of rows. Their
// sums are the same bits as without. `packed`: matmul_packed_b_words() words, 64-byte aligned.
int64_t matmul_packed_b_words(DType dtype, int64_t cols, int64_t depth);
void pack_matmul_b(const Matmul& matmul, uint32_t* packed);

// The same with a given kernel, for tests.
int64_t matmul_scratch_bytes(const Matmul& matmul, const MatmulKernel& kernel);
void run_matmul(const Matmul& matmul, const MatmulKernel& kernel, void* scratch);
int64_t matmul_packed_b_words(const MatmulKernel& kernel, int64_t cols, int64_t depth);
void pack_matmul_b(const Matmul& matmul, const MatmulKernel& kernel, uint32_t* packed);
MatmulKernel best_matmul_kernel(DType dtype);

}  // namespace skein
