// Where a lane's text comes from: the corpus is seen as one line of bytes and divided into blocks
// of whole documents, and a seeded permutation orders the blocks anew in every epoch.
//
// Formula  N bytes of text are divided into n even windows, w_k = floor(k N / n). Block k begins at
//          the first document start in [w_k, w_k+1); where there is none, one document covers the
//          whole window and is cut at w_k (moved to the next UTF-8 boundary). So blocks partition
//          the corpus, none is empty, none is longer than two windows, and only a document longer
//          than a window is ever cut.
//          n = N / block_bytes; at least 1024 per lane while windows keep 32 KiB; at least 1 per
//          lane.
// Memory   none: a block's place is computed on demand, by a search for the document at a byte.
// Format   docs/data_order.md
// Threads  several threads may call const functions at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/data/corpus/corpus.h"

namespace skein {

// Numbered documents for lanes to read. Texts must not outlive the source.
class DocumentSource {
 public:
  virtual ~DocumentSource() = default;
  virtual int64_t num_documents() const = 0;
  virtual int64_t num_bytes() const = 0;  // of all documents together
  virtual int64_t document_bytes(int64_t index) const = 0;
  // The part of a document from `begin` on, of at most `num_bytes` bytes.
  virtual HeldText part(int64_t index, int64_t begin, int64_t num_bytes) const = 0;
  // The document that holds byte `position` of all of them, 0 <= position < num_bytes().
  virtual DocumentPlace find(int64_t position) const = 0;
  // Which bytes of a document count for the loss; whether the source says so at all.
  virtual bool has_loss_spans() const { return false; }
  virtual std::vector<ByteRange> loss_spans(int64_t) const { return {}; }
  virtual std::string name() const = 0;  // for errors
  // Hints that bytes of all documents laid end to end will be read soon.
  virtual void read_ahead(const ByteRange&) const {}
  // Hints that the text, or everything, will not be read again soon and need not stay in memory.
  virtual void forget(std::string_view) const {}
  virtual void forget_all() const {}
};

// A corpus file; `corpus` must outlive it.
class CorpusDocuments final : public DocumentSource {
 public:
  explicit CorpusDocuments(const Corpus& corpus) : corpus_(corpus) {}
  int64_t num_documents() const override { return corpus_.num_documents(); }
  int64_t num_bytes() const override { return corpus_.num_bytes(); }
  int64_t document_bytes(int64_t index) const override { return corpus_.document_bytes(index); }
  HeldText part(int64_t index, int64_t begin, int64_t num_bytes) const override {
    return corpus_.part(index, begin, num_bytes);
  }
  DocumentPlace find(int64_t position) const override { return corpus_.find(position); }
  bool has_loss_spans() const override { return corpus_.has_loss_spans(); }
  std::vector<ByteRange> loss_spans(int64_t index) const override {
    return corpus_.loss_spans(index);
  }
  std::string name() const override { return corpus_.path().string(); }
  void read_ahead(const ByteRange& range) const override { corpus_.read_ahead(range); }
  void forget(std::string_view text) const override { corpus_.forget(text); }
  void forget_all() const override { corpus_.forget_all(); }

 private:
  const Corpus& corpus_;
};

// The unit of tokenization: a document, or a part of one that had to be cut.
struct Segment {
  int64_t document = 0;
  int64_t document_begin = 0;  // byte of the corpus where the document begins
  ByteRange range;
  bool ends_document = false;
};

class CorpusBlocks {
 public:
  static constexpr int64_t kMinBytesPerLane = 8;

  // Documents are cut into segments of at most max(256 KiB, 16 bytes per token of a row), so that
  // tokenizing needs bounded memory; blocks are four times as large, 1 MiB. Errors: kUsage if a
  // lane would have less than kMinBytesPerLane of text.
  CorpusBlocks(const DocumentSource& source, int64_t num_lanes, int64_t sequence_length);

  int64_t num_blocks() const { return num_blocks_; }
  int64_t num_bytes() const { return num_bytes_; }
  int64_t segment_bytes() const { return segment_bytes_; }
  // For rows of so many tokens, whatever the corpus.
  static int64_t segment_bytes(int64_t sequence_length);

  // 0 <= index < num_blocks().
  ByteRange block(int64_t index) const { return {boundary(index), boundary(index + 1)}; }

  // Asks for the text of a block from byte `byte` of its window on, `num_bytes` of it, and for
  // where it ends.
  void read_ahead(int64_t index, int64_t byte, int64_t num_bytes) const;

  // The segment that begins at byte `position` of a block that ends at `block_end`. `position` must
  // be the beginning of the block or the end of the previous segment. Never empty: documents
  // without text are skipped.
  Segment segment(int64_t position, int64_t block_end) const;

  // The segment after `segment`, which does not end its block; needs no search.
  Segment next_segment(const Segment& segment, int64_t block_end) const;

  HeldText text(const Segment& segment) const;

 private:
  Segment segment_of(const DocumentPlace& at, int64_t position, int64_t block_end) const;
  int64_t utf8_boundary(const DocumentPlace& at, int64_t position) const;
  int64_t window(int64_t index) const;
  int64_t boundary(int64_t index) const;

  const DocumentSource& source_;
  int64_t num_bytes_ = 0;
  int64_t num_blocks_ = 0;
  int64_t segment_bytes_ = 0;
};

// The order of blocks: position p is index p mod n of epoch p / n. Each epoch is a permutation of 0
// .. n-1: an eight-round Feistel network over the next power of four, keyed by (seed, epoch)
// through Philox and applied repeatedly until the result is below n. Nothing is stored.
// Source   Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002
class BlockOrder {
 public:
  BlockOrder(uint64_t seed, int64_t num_blocks);

  int64_t epoch(int64_t position) const { return position / num_blocks_; }
  int64_t block(int64_t position) const;

 private:
  uint64_t seed_;
  int64_t num_blocks_;
  int half_bits_;
};

}  // namespace skein
