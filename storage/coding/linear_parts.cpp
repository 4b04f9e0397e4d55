// Names are tried one by one; the first fault is kept, so that the list of parts reads as a list.
#include "storage/coding/linear_parts.hpp"

namespace sangam {
namespace {

constexpr RowCode kRowCodes[] = {RowCode::b1, RowCode::b2, RowCode::b3, RowCode::b4, RowCode::b8};

class PartFinder {
 public:
  PartFinder(const std::string& prefix, const TensorLookup& lookup) : prefix_(prefix), lookup_(lookup) {}

  /// The one matrix of this kind, coded or, where there is such a tensor, `plain`.
  LinearPart matrix(const std::string& kind, const LinearSize& size, LinearPart plain = {}) {
    LinearPart found = std::move(plain);
    for (const RowCode code : kRowCodes) {
      const std::string name = prefix_ + "." + kind + "." + std::string(suffix_of(code));
      if (!lookup_(name)) continue;
      if (found.exists()) fail(found.name + " and " + name + " exclude each other; keep one");
      found = {name, {size.rows, std::int64_t(row_bytes(code, size.columns))}, DType::u8, code};
    }
    return found;
  }
  LinearPart part(const std::string& kind, std::vector<std::int64_t> shape, std::optional<DType> dtype = {}) {
    const std::string name = prefix_ + "." + kind;
    return lookup_(name) ? LinearPart{name, std::move(shape), dtype} : LinearPart();
  }
  /// 0: there is no low-rank part.
  std::int64_t rank() {
    const std::string down_name = prefix_ + ".low_rank.down", up_name = prefix_ + ".low_rank.up";
    const auto down = lookup_(down_name), up = lookup_(up_name);
    if (up && !down) fail(down_name + ": missing, although " + up_name + " is there");
    if (down && !up) fail(up_name + ": missing, although " + down_name + " is there");
    if (!down || !up) return 0;
    const std::int64_t rank = down->shape.empty() ? 0 : down->shape.front();
    if (rank < 1) fail(down_name + ": its first extent is the rank, which must be 1 or more");
    return rank;
  }
  void refuse(const LinearPart& part) {
    if (part.exists()) fail(part.name + ": a table whose rows are looked up cannot have it");
  }
  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }

 private:
  void fail(std::string context) {
    if (!fault_) fault_ = make_error(ErrorCode::invalid_input, std::move(context));
  }

  const std::string& prefix_;
  const TensorLookup& lookup_;
  std::optional<Error> fault_;
};

}  // namespace

std::vector<LinearPart> LinearParts::all() const {
  std::vector<LinearPart> parts;
  for (const LinearPart* part : {&canonical, &delta, &row_scale, &row_shift, &down, &up}) {
    if (part->exists()) parts.push_back(*part);
  }
  return parts;
}

Result<LinearParts> find_linear_parts(const std::string& prefix, const LinearSize& size, const TensorLookup& lookup) {
  PartFinder find(prefix, lookup);
  LinearParts parts;
  parts.canonical = find.matrix("weight", size, find.part("weight", {size.rows, size.columns}));
  if (!parts.canonical.exists()) parts.canonical = {prefix + ".weight", {size.rows, size.columns}};
  parts.delta = find.matrix("delta", size);
  parts.row_scale = find.part("row_scale", {size.rows}, DType::f32);
  parts.row_shift = find.part("row_shift", {size.rows}, DType::f32);
  if (const std::int64_t rank = find.rank(); rank > 0) {
    parts.down = find.part("low_rank.down", {rank, size.columns});
    parts.up = find.part("low_rank.up", {size.rows, rank});
  }
  if (size.is_table) {
    for (const LinearPart* part : {&parts.row_shift, &parts.down, &parts.up}) find.refuse(*part);
  }
  if (find.fault()) return *find.fault();
  return parts;
}

bool has_type(const std::optional<DType>& wanted, DType type) {
  return wanted ? type == *wanted : type == DType::bf16 || type == DType::f16 || type == DType::f32;
}

}  // namespace sangam
