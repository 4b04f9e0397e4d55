// Numbers, and what + * % do to strings and lists.
#include <algorithm>
#include <cmath>

#include "gateway/text/jinja/operators.hpp"

namespace sangam::jinja {
namespace {

/// A template has no use for longer strings or lists; it stops one that would eat the memory.
constexpr std::int64_t kRepeatLimit = 1 << 24;

constexpr const char* kSigns[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

[[noreturn]] void refuse(Arithmetic operation, const Value& left, const Value& right) {
  throw TemplateError(std::string("unsupported operand type(s) for ") + kSigns[static_cast<int>(operation)] +
                      ": '" + type_name(left) + "' and '" + type_name(right) + "'");
}

/// By reference: the caller computes both arguments in one expression.
std::int64_t checked(bool overflow, const std::int64_t& result) {
  if (overflow) throw TemplateError("the result does not fit into 64 bits");
  return result;
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent && result != 0 && base != 1; ++i) {
    if (base == -1 && i > 1) return Value(std::int64_t{exponent % 2 == 0 ? 1 : -1});
    if (__builtin_mul_overflow(result, base, &result))
      throw TemplateError("the result does not fit into 64 bits");
  }
  return result;
}

Value on_integers(Arithmetic operation, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (operation) {
    case Arithmetic::add:
      return checked(__builtin_add_overflow(a, b, &result), result);
    case Arithmetic::subtract:
      return checked(__builtin_sub_overflow(a, b, &result), result);
    case Arithmetic::multiply:
      return checked(__builtin_mul_overflow(a, b, &result), result);
    case Arithmetic::power:
      return integer_power(a, b);
    default:
      break;
  }
  if (b == 0) throw TemplateError("division by zero");
  if (operation == Arithmetic::divide) return static_cast<double>(a) / static_cast<double>(b);
  if (b == -1)
    return operation == Arithmetic::modulo ? Value(std::int64_t{0}) : on_integers(Arithmetic::subtract, 0, a);
  const std::int64_t quotient = floor_quotient(a, b);
  return operation == Arithmetic::floor_divide ? quotient : a - quotient * b;
}

Value on_reals(Arithmetic operation, double a, double b) {
  switch (operation) {
    case Arithmetic::add:
      return a + b;
    case Arithmetic::subtract:
      return a - b;
    case Arithmetic::multiply:
      return a * b;
    case Arithmetic::power:
      return std::pow(a, b);
    default:
      break;
  }
  if (b == 0) throw TemplateError("division by zero");
  if (operation == Arithmetic::divide) return a / b;
  if (operation == Arithmetic::floor_divide) return std::floor(a / b);
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value repeat(const Value& sequence, std::int64_t times) {
  times = std::max<std::int64_t>(times, 0);
  const auto size = static_cast<std::int64_t>(sequence.text() != nullptr ? sequence.text()->size()
                                                                         : sequence.items()->size());
  if (size > 0 && times > kRepeatLimit / size) throw TemplateError("the repetition is too long");
  if (const std::string* text = sequence.text()) {
    std::string out;
    for (std::int64_t i = 0; i < times; ++i) out += *text;
    return out;
  }
  List out;
  for (std::int64_t i = 0; i < times; ++i)
    out.insert(out.end(), sequence.items()->begin(), sequence.items()->end());
  return sequence.is<Tuple>() ? Value::tuple(std::move(out)) : Value(std::move(out));
}

bool is_sequence(const Value& value) {
  return value.text() != nullptr || value.items() != nullptr;
}

std::optional<Value> on_sequences(Arithmetic operation, const Value& left, const Value& right) {
  if (operation == Arithmetic::multiply) {
    if (is_sequence(left) && right.is_integer()) return repeat(left, right.integer());
    if (left.is_integer() && is_sequence(right)) return repeat(right, left.integer());
  }
  if (operation != Arithmetic::add || left.kind().index() != right.kind().index()) return std::nullopt;
  if (left.text() != nullptr) return Value(*left.text() + *right.text());
  if (left.items() == nullptr) return std::nullopt;
  List out = *left.items();
  out.insert(out.end(), right.items()->begin(), right.items()->end());
  return left.is<Tuple>() ? Value::tuple(std::move(out)) : Value(std::move(out));
}

}  // namespace

Value calculate(Arithmetic operation, const Value& left, const Value& right) {
  require_defined(left), require_defined(right);
  if (left.is_integer() && right.is_integer()) return on_integers(operation, left.integer(), right.integer());
  if (left.is_number() && right.is_number()) return on_reals(operation, left.real(), right.real());
  if (auto sequence = on_sequences(operation, left, right)) return *std::move(sequence);
  if (operation == Arithmetic::add && left.text() != nullptr) {
    throw TemplateError("can only concatenate str (not \"" + type_name(right) + "\") to str");
  }
  if (operation == Arithmetic::add && left.items() != nullptr && !left.is<Tuple>()) {
    throw TemplateError("can only concatenate list (not \"" + type_name(right) + "\") to list");
  }
  refuse(operation, left, right);
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is<double>()) return -value.real();
  if (value.is_integer()) return on_integers(Arithmetic::subtract, 0, value.integer());
  throw TemplateError("bad operand type for unary -: '" + type_name(value) + "'");
}

}  // namespace sangam::jinja
