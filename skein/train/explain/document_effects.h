// What each document of a batch does by itself: its loss, and the norm of the gradient that it
// alone would give. Poison shows as a document that stands out from the others of its batch.
//
// Formula  loss = mean over the label tokens of the document's part of a row; bits_per_byte = the
//          sum of its losses / ln 2 / bytes of its text, which does not depend on how many tokens
//          the tokenizer needs for such text; grad_norm = the norm of the gradient of that mean,
//          before clipping.
//          shuffled_loss = the loss of the same tokens in random order, which for what has an
//          order that the model knows is far larger.
//          What few tokens give scatters more, so of n of them four numbers are compared with the
//          other documents': (loss - mean loss of the batch) sqrt(n), the same of bits_per_byte
//          and of loss - shuffled_loss, and ln(grad_norm sqrt(n)). A document's deviation is the
//          largest of its distances above their medians, in robust standard deviations: 1.4826 x
//          the median distance from the median, or 0.1 for the losses and 0.35 for the norm where
//          that is less
// Order    by falling deviation; what is not finite comes first
// Cost     two forwards and backwards of one row, and updates, for each document
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "skein/data/lanes/packer.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "skein/train/loop/step_runner.h"

namespace skein {

struct DocumentEffect {
  RowSegment place;
  std::string source;  // the file that the document came from; empty: not known
  int64_t record = 0;  // in that file, from 1
  int64_t num_labels = 0;
  std::string text;
  double loss = 0;
  double bits_per_byte = 0;
  float grad_norm = 0;
  double shuffled_loss = 0;  // of the same tokens in random order
  double loss_share = 0;     // of the sum of the batch's losses
  double deviation = 0;
  int64_t loss_rank = 0;  // 1: the largest loss
  int64_t grad_rank = 0;  // 1: the largest gradient norm
};

// `one_row`: of a Replica with steps of one row. `restore` puts its state back after a gradient
// that is not finite. Parts of a row without a label are left out, since they teach nothing.
std::vector<DocumentEffect> document_effects(StepRunner& one_row, const Batch& batch,
                                             std::span<const RowSegment> segments,
                                             const Tokenizer& tokenizer,
                                             const std::function<void()>& restore);

// Fills in what follows from loss, gradient norm, labels and text, and orders the documents.
void rank_documents(std::vector<DocumentEffect>& documents);

}  // namespace skein
