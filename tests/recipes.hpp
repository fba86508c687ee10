#pragma once

#include "sim/calibrate/recipes/gemm_recipes.hpp"
#include "tests/test_support.hpp"

namespace overlap::test {

inline const GemmRecipes& shipped_recipes() {
    static const GemmRecipes recipes = read_gemm_recipes(shipped.recipes());
    return recipes;
}

}  // namespace overlap::test
