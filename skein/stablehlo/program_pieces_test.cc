#include "skein/stablehlo/program_pieces.h"

#include <gtest/gtest.h>

namespace skein::stablehlo {
namespace {

const OpDef kOp{.name = "op"};

Operand value(int64_t offset, int64_t rows = 4, int64_t cols = 8, int64_t stride = 8) {
  Operand operand;
  operand.offset_bytes = offset;
  operand.shape = {rows, cols};
  operand.row_stride = stride;
  return operand;
}

Instruction instruction(std::vector<Operand> inputs, std::vector<Operand> outputs,
                        const std::string& axis = "") {
  Instruction made;
  made.op = &kOp;
  if (!axis.empty()) made.attrs.set("axis", axis);
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  return made;
}

Cell cell(const Operand& operand) { return Cell::of(operand, 0); }

// x -> a; a gathered over tp -> b; b, a -> y; y over dp -> z
Program two_collectives() {
  Program program;
  program.name = "forward";
  program.instructions = {instruction({value(0)}, {value(1024)}),
                          instruction({value(1024)}, {value(2048)}, "tp"),
                          instruction({value(2048), value(1024)}, {value(3072)}),
                          instruction({value(3072)}, {value(4096)}, "dp")};
  return program;
}

TEST(Pieces, EndWhereOtherProcessesTakePart) {
  const Mesh mesh = Mesh::standard(1, 2, 1, 2);
  const Program program = two_collectives();
  const auto pieces = [&](int64_t together) {
    std::vector<std::string> names;
    for (const Piece& piece : compiled_pieces(program, mesh, 3, together)) {
      names.push_back(piece_name(program, piece) + " to " + std::to_string(piece.end));
    }
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(pieces(4), Names({"forward to 4"}));
  EXPECT_EQ(pieces(2), Names({"forward.from_op_0 to 3"}));
  EXPECT_EQ(pieces(1), Names({"forward.from_op_0 to 1", "forward.from_op_2 to 3"}));
}

TEST(Pieces, SendsStayOut) {
  const Mesh mesh = Mesh::standard(2, 1, 1, 1);
  EXPECT_FALSE(is_compiled(instruction({value(0)}, {value(64)}, "pp.backward"), mesh, 0, 2));
  EXPECT_TRUE(is_compiled(instruction({value(0)}, {value(64)}, "tp"), mesh, 0, 1));
}

TEST(Pieces, KeepWhatTheRestOfTheProgramReads) {
  const Program program = two_collectives();
  const CellMap kept = cells_kept_by({0, 1}, program, {});
  EXPECT_TRUE(kept.holds_part_of(cell(value(1024))));
  EXPECT_TRUE(kept.holds_part_of(cell(value(1024 + 64, 1))));  // a row of it
  EXPECT_FALSE(kept.holds_part_of(cell(value(2048))));         // written before it is read
}

TEST(Cells, ColumnsOfOneMatrixShareNoMemory) {
  CellMap cells;
  cells.insert(cell(value(0, 4, 8, 16)));
  EXPECT_FALSE(cells.holds_part_of(cell(value(32, 4, 8, 16))));
  EXPECT_TRUE(cells.holds_part_of(cell(value(28, 4, 8, 16))));
  EXPECT_TRUE(cells.holds_part_of(cell(value(0, 4, 16, 16))));
  cells.erase_shared(cell(value(0, 4, 16, 16)));
  EXPECT_TRUE(cells.cells().empty());
}

}  // namespace
}  // namespace skein::stablehlo
