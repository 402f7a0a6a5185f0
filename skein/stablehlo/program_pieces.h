// The pieces of a program that a compiler gets one by one: what lies between instructions that
// communicate with other processes, which the host runs.
#pragma once

#include <string>
#include <vector>

#include "skein/stablehlo/cells.h"

namespace skein::stablehlo {

// Whether the compiled text of the `ranks_together` ranks of a process, beginning at a multiple of
// that number, can hold the instruction: it communicates with none of the others. Sends and
// receives stay out.
bool is_compiled(const Instruction& instruction, const Mesh& mesh, int64_t rank,
                 int64_t ranks_together);

struct Piece {
  size_t begin = 0, end = 0;  // instructions of the program
};

std::vector<Piece> compiled_pieces(const Program& program, const Mesh& mesh, int64_t rank,
                                   int64_t ranks_together);

// "forward", or of a program of several "forward.from_op_12".
std::string piece_name(const Program& program, const Piece& piece);

// What this piece must leave behind: `kept` (cells_kept), and what the rest of its program reads.
CellMap cells_kept_by(const Piece& piece, const Program& program, const Cells& kept);

}  // namespace skein::stablehlo
