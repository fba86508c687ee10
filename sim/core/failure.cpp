#include "sim/core/failure.hpp"

#include <filesystem>
#include <new>
#include <stdexcept>

#include "sim/core/files_read.hpp"
#include "sim/core/kept_errors.hpp"
#include "sim/core/shown.hpp"

namespace overlap {

Failure current_failure() {
    const Failure too_large{"needs more memory than there is (fewer GPUs, chunks or operators need less)"};
    try {
        throw;
    } catch (const UserErrors& errors) {
        return {one_line(errors.what()), false, errors.lines()};
    } catch (const UserError& error) {
        return {one_line(error.what())};
    } catch (const ChangedFile& error) {
        return {one_line(error.what())};
    } catch (const std::filesystem::filesystem_error& error) {
        return {one_line(error.path1().string() + ": " + error.code().message())};
    } catch (const std::bad_alloc&) {
        return too_large;
    } catch (const std::length_error&) {  // of a container that could never be so long
        return too_large;
    } catch (const std::exception& error) {
        return {one_line(std::string("internal error: ") + error.what()) +
                    " (please report the command line and this text)",
                true};
    } catch (...) {
        return {"internal error of an unknown kind (please report the command line)", true};
    }
}

}  // namespace overlap
