#include "skein/ops/matmul/matmul_cpu.h"

#include <omp.h>

#include <algorithm>
#include <array>

#include "skein/base/machine/prefetch.h"
#include "skein/base/text/units.h"
#include "skein/ops/matmul/matmul_blocking.h"
#include "skein/ops/team_tasks.h"

namespace skein {
namespace {

using namespace matmul_cpu;  // NOLINT(google-build-using-namespace): its other half

constexpr int64_t kPackSteps = 128;          // of a task; a multiple of block_steps
constexpr int64_t kStripeBytes = 512 << 10;  // of A, beside a task's columns of B in L2
// Where A's rows go by themselves: the steps after which the next rows take their turn, so that a
// task's columns of B stay in L2 for all of them. A multiple of block_steps.
constexpr int64_t kPassSteps = 1024;
// A smaller product takes less time than starting a team of threads.
constexpr int64_t kMinParallelMultiplyAdds = 1 << 20;

// Steps of the summed dim, counted over all terms.
struct DepthBlock {
  int64_t begin = 0;
  int64_t steps = 0;
};

int64_t multiply_adds(const Matmul& matmul) {
  int64_t depth = 0;
  for (int t = 0; t < matmul.num_terms; ++t) depth += matmul.terms[t].depth;
  return matmul.rows * matmul.cols * depth;
}

MatmulOperand advanced(const MatmulOperand& from, DType dtype, int64_t lane, int64_t depth) {
  const int64_t offset = from.depth_is_row ? depth * from.row_stride + lane  //
                                           : lane * from.row_stride + depth;
  MatmulOperand to = from;
  to.data = static_cast<const char*>(from.data) + offset * size_of(dtype);
  return to;
}

// The loops of a product; between two runs of each the team meets at a barrier.
struct Team {
  TeamTasks pack_b, pack_a, multiply;
};
struct TeamMember {
  explicit TeamMember(Team& team)
      : pack_b(team.pack_b), pack_a(team.pack_a), multiply(team.multiply) {}
  TeamTasks::Member pack_b, pack_a, multiply;
  const int64_t size = omp_get_num_threads();
};

// One product, or a piece of it, whose packed B, packed A and unfinished sums share `scratch`;
// called by every thread of a team.
class Product {
 public:
  // `begins`, `ends`: where unfinished sums are kept, whether this is the first or the last piece.
  Product(const Matmul& matmul, const MatmulKernel& kernel, const Blocking& blocking, void* scratch,
          TeamMember& team, bool begins = true, bool ends = true)
      : matmul_(matmul),
        kernel_(kernel),
        blocking_(blocking),
        team_(team),
        begins_(begins),
        ends_(ends),
        own_packed_b_(static_cast<uint32_t*>(scratch)),
        packed_b_(matmul.packed_b != nullptr ? matmul.packed_b : own_packed_b_),
        packed_a_(own_packed_b_ + blocking.packed_b_bytes / 4),
        unfinished_(reinterpret_cast<float*>(packed_a_ + blocking.packed_a_bytes / 4)) {}

  void run() const {
    if (kernel_.begin) kernel_.begin();
    multiply_all();
    if (kernel_.end) kernel_.end();
  }

  // All columns of B, into the scratch memory.
  void pack_b(int64_t col, int64_t cols) const {
    pack(team_.pack_b, kernel_.pack_b, &MatmulTerm::b, col, cols, kernel_.panel_cols, kTaskCols,
         own_packed_b_);
  }

  static void wait_for_team() {
#pragma omp barrier
  }

 private:
  using PackFunction = decltype(MatmulKernel::pack_b);

  void multiply_all() const {
    for (int64_t col = 0; col < matmul_.cols; col += blocking_.block_cols) {
      const int64_t cols = std::min(blocking_.block_cols, matmul_.cols - col);
      if (col > 0) wait_for_team();  // other threads may still read what was packed before
      if (matmul_.packed_b == nullptr) pack_b(col, cols);
      for (int64_t row = 0; row < matmul_.rows; row += blocking_.block_rows) {
        const int64_t rows = std::min(blocking_.block_rows, matmul_.rows - row);
        if (blocking_.pack_a) {
          if (row > 0) wait_for_team();
          pack(team_.pack_a, kernel_.pack_a, &MatmulTerm::a, row, rows, kernel_.a_panel_rows,
               kTaskRows, packed_a_);
        }
        wait_for_team();
        multiply(row, rows, col, cols);
      }
    }
  }

  // Packs lanes [first, first + count) of every term's A or B; a task is some panels by
  // kPackSteps.
  void pack(TeamTasks::Member& member, PackFunction pack_panels, MatmulOperand MatmulTerm::*operand,
            int64_t first, int64_t count, int width, int64_t task_lanes, uint32_t* packed) const {
    const int64_t groups = ceil_div(count, task_lanes);
    const int64_t panel_words = blocking_.steps * width;
    std::array<int64_t, kMaxMatmulTerms + 1> begins = {};  // tasks of the terms before
    for (int t = 0; t < matmul_.num_terms; ++t) {
      begins[t + 1] =
          begins[t] + groups * ceil_div(steps_of(matmul_.terms[t], kernel_), kPackSteps);
    }
    member.run(begins[matmul_.num_terms], [&](int64_t task) {
      int t = 0;
      int64_t term_step = 0;
      for (; task >= begins[t + 1]; ++t) term_step += steps_of(matmul_.terms[t], kernel_);
      const MatmulTerm& term = matmul_.terms[t];
      const int64_t in_term = task - begins[t], blocks = (begins[t + 1] - begins[t]) / groups;
      // In the order of memory: what this core wrote is still in its caches.
      const bool by_depth = (term.*operand).depth_is_row;
      const int64_t lane = (by_depth ? in_term % groups : in_term / blocks) * task_lanes;
      const int64_t step = (by_depth ? in_term / groups : in_term % blocks) * kPackSteps;
      const int64_t depth_begin = step * kernel_.elements_a_step;
      const int64_t depth =
          std::min(term.depth - depth_begin, kPackSteps * kernel_.elements_a_step);
      pack_panels(advanced(term.*operand, matmul_.dtype, first + lane, depth_begin), depth,
                  std::min(task_lanes, count - lane),
                  packed + lane / width * panel_words + (term_step + step) * width, panel_words);
    });
  }

  void multiply(int64_t first_row, int64_t rows, int64_t first_col, int64_t cols) const {
    const int64_t task_rows = rows_of_a_task(rows), row_tasks = ceil_div(rows, task_rows);
    const int64_t col_tasks = ceil_div(cols, kTaskCols);
    const int64_t task_cols = round_up(ceil_div(cols, col_tasks), kernel_.panel_cols);
    const int64_t stripe = tasks_of_a_stripe(row_tasks, task_rows, cols);
    team_.multiply.run(row_tasks * col_tasks, [&](int64_t task) {
      const int64_t first = task / (stripe * col_tasks) * stripe;  // of this stripe
      const int64_t in_stripe = task - first * col_tasks,
                    height = std::min(stripe, row_tasks - first);
      const int64_t row = (first + in_stripe % height) * task_rows;
      const int64_t col = in_stripe / height * task_cols;
      const int num_rows = static_cast<int>(std::min(task_rows, rows - row));
      const int num_cols = static_cast<int>(std::min(task_cols, cols - col));
      if (num_rows > 0 && num_cols > 0) {
        run_task(first_row, row, num_rows, first_col, col, num_cols);
      }
    });
  }

  // Even shares of whole tiles; a packed A whose panels are larger is taken panel by panel. Where
  // A's rows go by themselves, a task may have fewer, if a thread then has fewer in all.
  int64_t rows_of_a_task(int64_t rows) const {
    const bool by_panels = blocking_.pack_a && kernel_.a_panel_rows > kernel_.tile_rows;
    if (by_panels) return kTaskRows;
    const int64_t even = round_up(ceil_div(rows, ceil_div(rows, kTaskRows)),
                                  static_cast<int64_t>(kernel_.tile_rows));
    if (!kernel_.keeps_a) return even;
    const auto of_a_thread = [&](int64_t task) {
      return ceil_div(ceil_div(rows, task), team_.size) * task;
    };
    int64_t best = even;
    for (int64_t fewer = even - kernel_.tile_rows; fewer > 0; fewer -= kernel_.tile_rows) {
      if (of_a_thread(fewer) * 20 < of_a_thread(best) * 19) best = fewer;
    }
    return best;
  }

  // A stripe of row tasks goes through all columns before the next one: its rows of A stay in L2,
  // and a task's columns of B until all rows of the stripe have met them. Or all of a thread's rows
  // do, and A is read once for each task's columns, where those of B stay in L2 and less is read
  // from behind it. Each thread begins with about as many stripes.
  int64_t tasks_of_a_stripe(int64_t row_tasks, int64_t task_rows, int64_t cols) const {
    const int64_t fit =
        std::max<int64_t>(kStripeBytes / std::max<int64_t>(task_rows * blocking_.steps * 4, 1), 1);
    const int64_t of_thread = ceil_div(row_tasks, team_.size);
    const int64_t read_by_stripes = of_thread * task_rows + cols * ceil_div(of_thread, fit);
    const int64_t read_at_once = of_thread * task_rows * ceil_div(cols, kTaskCols) + cols;
    const bool columns_stay = kTaskCols * blocking_.steps * 4 <= l2_bytes() * 3 / 4;
    if (kernel_.keeps_a && columns_stay && read_at_once < read_by_stripes) return of_thread;
    return ceil_div(row_tasks, round_up(ceil_div(row_tasks, fit), team_.size));
  }

  MatmulTiles tiles(const MatmulTerm& term, int64_t first_row, int64_t row, int64_t step,
                    int64_t term_step) const {
    if (blocking_.pack_a) {
      const int64_t panel_rows = kernel_.a_panel_rows, row_bytes = kernel_.block_steps * 4;
      const uint32_t* data = packed_a_ + row * blocking_.steps + (term_step + step) * panel_rows;
      const bool is_a_tile = panel_rows == kernel_.tile_rows;
      return {reinterpret_cast<const char*>(data),
              kernel_.tile_rows * (is_a_tile ? blocking_.steps * 4 : row_bytes), row_bytes,
              panel_rows * 4};
    }
    const MatmulOperand at =
        advanced(term.a, matmul_.dtype, first_row + row, step * kernel_.elements_a_step);
    const int64_t row_bytes = at.row_stride * size_of(matmul_.dtype);
    return {static_cast<const char*>(at.data), row_bytes * kernel_.tile_rows, row_bytes, 4};
  }

  // The sums of the task of so many rows at this place, where pieces keep them.
  float* unfinished(int64_t row, int64_t rows, int64_t col) const {
    return unfinished_ + row * round_up(matmul_.cols, kTaskCols) + col * rows;
  }

  // The sums of some rows of a task, one panel of columns after the other.
  struct Sums {
    float* data = nullptr;
    int64_t panel_words = 0;
  };

  void run_task(int64_t first_row, int64_t row, int num_rows, int64_t first_col, int64_t col,
                int num_cols) const {
    alignas(64) float own_sums[kTaskRows * kTaskCols];
    const bool kept = blocking_.cut == Cut::kKeepSums;
    const int64_t width = kernel_.panel_cols, whole_rows = round_up(num_rows, kernel_.tile_rows);
    const int at_once = kernel_.keeps_a ? kernel_.tile_rows : num_rows;
    const int64_t pass_steps = kernel_.keeps_a ? kPassSteps : blocking_.steps;
    for (int64_t done = 0; done < blocking_.steps; done += pass_steps) {
      const DepthBlock pass = {done, std::min(pass_steps, blocking_.steps - done)};
      for (int begin = 0; begin < num_rows; begin += at_once) {
        const int rows = std::min(at_once, num_rows - begin);
        Sums sums = {own_sums, round_up(rows, kernel_.tile_rows) * width};
        if (kept) {
          sums = {unfinished(first_row + row, whole_rows, first_col + col) + begin * width,
                  whole_rows * width};
        } else if (pass_steps < blocking_.steps) {
          sums.data += begin * kTaskCols;
        }
        run_rows(first_row, row, begin, rows, first_col, col, num_cols, pass, sums);
      }
    }
  }

  // `num_rows` of a task at `row`, from its row `begin` on, over the steps of a pass.
  void run_rows(int64_t first_row, int64_t row, int begin, int num_rows, int64_t first_col,
                int64_t col, int num_cols, DepthBlock pass, Sums sums) const {
    const int width = kernel_.panel_cols;
    const int64_t pass_end = pass.begin + pass.steps;
    int64_t term_begin = 0;
    for (int t = 0; t < matmul_.num_terms; ++t) {
      const int64_t term_end = term_begin + steps_of(matmul_.terms[t], kernel_);
      const int64_t end = std::min(term_end, pass_end);
      for (int64_t done = std::max(term_begin, pass.begin); done < end;) {
        const DepthBlock block = {done, std::min(depth_steps_, end - done)};
        MatmulTiles a = tiles(matmul_.terms[t], first_row, row, done - term_begin, term_begin);
        a.data += begin / kernel_.tile_rows * a.tile_bytes;
        for (int p = 0; p * width < num_cols; ++p) {
          const int64_t panel = (col / width + p) * blocking_.steps;
          run_panel(a, first_row + row + begin, num_rows, packed_b_ + (panel + done) * width,
                    first_col + col + p * width, std::min(width, num_cols - p * width), block,
                    sums.data + p * sums.panel_words);
        }
        done += block.steps;
      }
      term_begin = term_end;
    }
  }

  // Adds one depth block to the sums of one panel, tile by tile; stores them after the last one.
  void run_panel(const MatmulTiles& a, int64_t row, int num_rows, const uint32_t* b, int64_t col,
                 int num_cols, DepthBlock block, float* sums) const {
    const bool first = begins_ && block.begin == 0;
    const bool last = ends_ && block.begin + block.steps == blocking_.steps;
    const MatmulStore& c = matmul_.c;
    MatmulStore to = c;
    MatmulTiles tile = a;
    to.stream = blocking_.stream;
    if (c.bias) to.bias = static_cast<const char*>(c.bias) + col * size_of(c.bias_dtype);
    for (int done = 0; done < num_rows; done += kernel_.tile_rows) {
      const int rows = std::min(kernel_.tile_rows, num_rows - done);
      const int64_t at = (row + done) * c.row_stride + col;
      to.out = static_cast<char*>(c.out) + at * size_of(c.dtype);
      if (last && !blocking_.stream) fetch(to, rows, num_cols);
      kernel_.accumulate(tile, rows, b, block.steps, first, sums);
      if (last) kernel_.store(sums, rows, num_cols, to);
      tile.data += a.tile_bytes;
      sums += kernel_.tile_rows * kernel_.panel_cols;
    }
  }

  // C, so that it is in the cache when its sums are complete.
  static void fetch(const MatmulStore& to, int rows, int cols) {
    const char* line = static_cast<const char*>(to.out);
    for (int row = 0; row < rows; ++row, line += to.row_stride * size_of(to.dtype)) {
      for (int64_t byte = 0; byte < cols * size_of(to.dtype); byte += 64) {
        prefetch<2>(line + byte);
      }
    }
  }

  const Matmul& matmul_;
  const MatmulKernel& kernel_;
  const Blocking blocking_;
  TeamMember& team_;
  const bool begins_, ends_;
  const int64_t depth_steps_ = depth_block_steps(kernel_);
  uint32_t* const own_packed_b_;
  const uint32_t* const packed_b_;
  uint32_t* const packed_a_;
  float* const unfinished_;
};

// Called by every thread of a team.
void run_pieces(const Matmul& matmul, const MatmulKernel& kernel, const Blocking& blocking,
                void* scratch, TeamMember& team) {
  const MatmulTerm& whole = matmul.terms[0];
  const int64_t piece_depth = kMaxPieceSteps * kernel.elements_a_step;
  const bool keeps_sums = blocking.cut == Cut::kKeepSums;
  Matmul piece = matmul;
  Blocking piece_blocking = blocking;
  for (int64_t begin = 0; begin < whole.depth; begin += piece_depth) {
    piece.terms[0] = {std::min(piece_depth, whole.depth - begin),
                      advanced(whole.a, matmul.dtype, 0, begin),
                      advanced(whole.b, matmul.dtype, 0, begin)};
    piece_blocking.steps = steps_of(piece.terms[0], kernel);
    if (begin > 0) Product::wait_for_team();
    if (begin > 0 && !keeps_sums) {
      piece.c.bias = nullptr;
      piece.c.from_zero = false;
    }
    Product(piece, kernel, piece_blocking, scratch, team, !keeps_sums || begin == 0,
            !keeps_sums || begin + piece_depth >= whole.depth)
        .run();
  }
}

// Called by every thread of a team.
void run_bands(const Matmul& matmul, const MatmulKernel& kernel, const Blocking& blocking,
               void* scratch, TeamMember& team) {
  Matmul band = matmul;
  for (int64_t row = 0; row < matmul.rows; row += blocking.band_rows) {
    if (row > 0) Product::wait_for_team();
    band.rows = std::min(blocking.band_rows, matmul.rows - row);
    band.terms[0].a = advanced(matmul.terms[0].a, matmul.dtype, row, 0);
    band.c.out =
        static_cast<char*>(matmul.c.out) + row * matmul.c.row_stride * size_of(matmul.c.dtype);
    run_pieces(band, kernel, blocking, scratch, team);
  }
}

}  // namespace

MatmulKernel best_matmul_kernel(DType dtype) {
  if (const auto kernel = amx_matmul_kernel(dtype)) return *kernel;
  const std::optional<MatmulKernel> kernel = avx512_matmul_kernel(dtype);
  return kernel ? *kernel : portable_matmul_kernel(dtype);
}

int64_t matmul_scratch_bytes(const Matmul& matmul, const MatmulKernel& kernel) {
  const Blocking blocking = choose_blocking(matmul, kernel);
  return blocking.packed_b_bytes + blocking.packed_a_bytes + blocking.sums_bytes;
}

void run_matmul(const Matmul& matmul, const MatmulKernel& kernel, void* scratch) {
  const Blocking blocking = choose_blocking(matmul, kernel);
  Team team;
#pragma omp parallel if (multiply_adds(matmul) > kMinParallelMultiplyAdds)
  {
    TeamMember member(team);
    if (blocking.cut == Cut::kNone) {
      Product(matmul, kernel, blocking, scratch, member).run();
    } else {
      run_bands(matmul, kernel, blocking, scratch, member);
    }
  }
}

int64_t matmul_packed_b_words(const MatmulKernel& kernel, int64_t cols, int64_t depth) {
  return round_up(cols, static_cast<int64_t>(kernel.panel_cols)) *
         steps_of({depth, {}, {}}, kernel);
}

void pack_matmul_b(const Matmul& matmul, const MatmulKernel& kernel, uint32_t* packed) {
  Blocking blocking;
  blocking.steps = steps_of(matmul.terms[0], kernel);
  Team team;
#pragma omp parallel
  {
    TeamMember member(team);
    Product(matmul, kernel, blocking, packed, member).pack_b(0, matmul.cols);
  }
}

int64_t matmul_packed_b_words(DType dtype, int64_t cols, int64_t depth) {
  return matmul_packed_b_words(best_matmul_kernel(dtype), cols, depth);
}

void pack_matmul_b(const Matmul& matmul, uint32_t* packed) {
  pack_matmul_b(matmul, best_matmul_kernel(matmul.dtype), packed);
}

int64_t matmul_scratch_bytes(const Matmul& matmul) {
  return matmul_scratch_bytes(matmul, best_matmul_kernel(matmul.dtype));
}

void run_matmul(const Matmul& matmul, void* scratch) {
  run_matmul(matmul, best_matmul_kernel(matmul.dtype), scratch);
}

}  // namespace skein
