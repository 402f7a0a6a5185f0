#include "skein/stablehlo/program_pieces.h"

#include <fmt/format.h>

namespace skein::stablehlo {

bool is_compiled(const Instruction& instruction, const Mesh& mesh, int64_t rank,
                 int64_t ranks_together) {
  if (!instruction.attrs.has("axis")) return true;
  // A redistribution that takes a part of what the rank has.
  if (instruction.attrs.has("kind") && instruction.attrs.text("kind") == "slice") return true;
  const std::string& group = instruction.attrs.text("axis");
  const std::string axis = group.substr(0, group.find('.'));  // of "pp.backward", "pp"
  if (mesh.size(axis) == 1) return true;
  if (axis == "pp") return false;
  const int64_t process = rank / ranks_together;
  for (const int64_t peer : mesh.ranks_along(axis, rank)) {
    if (peer / ranks_together != process) return false;
  }
  return true;
}

std::vector<Piece> compiled_pieces(const Program& program, const Mesh& mesh, int64_t rank,
                                   int64_t ranks_together) {
  std::vector<Piece> pieces;
  bool is_open = false;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const bool compiled = is_compiled(program.instructions[i], mesh, rank, ranks_together);
    if (compiled && !is_open) pieces.push_back({i, i});
    if (compiled) pieces.back().end = i + 1;
    is_open = compiled;
  }
  return pieces;
}

std::string piece_name(const Program& program, const Piece& piece) {
  const bool is_all = piece.begin == 0 && piece.end == program.instructions.size();
  return is_all ? program.name : fmt::format("{}.from_op_{}", program.name, piece.begin);
}

CellMap cells_kept_by(const Piece& piece, const Program& program, const Cells& kept) {
  CellMap all;
  for (const Cell& cell : kept) all.insert(cell);
  for (Cell cell : cells_read(std::span(program.instructions).subspan(piece.end))) {
    cell.ahead = 0;
    all.insert(cell);
  }
  return all;
}

}  // namespace skein::stablehlo
