#include "sim/sweep/cluster.hpp"

#include <mpi.h>
#include <tbb/global_control.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace overlap {
namespace {

enum Tag { work = 1, rows = 2 };
/// Interval of checks for messages: a blocking receive of MPI would keep a core busy.
constexpr std::chrono::microseconds between_looks{200};

/// Environment variables set by mpirun of Open MPI, by others through PMI, and by srun through PMIx.
bool started_with_others() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
        if (std::getenv(name) != nullptr) return true;
    return false;
}

/// Points, errors, bytes of the CSV and of the digests of files.
using Head = std::array<std::uint64_t, 4>;
/// Sent instead of points if a process could not run them; the reason follows.
constexpr std::uint64_t not_run = UINT64_MAX;

std::vector<char> packed(const Head& head, std::initializer_list<std::string_view> texts) {
    std::vector<char> message(sizeof head);
    std::memcpy(message.data(), head.data(), sizeof head);
    for (const std::string_view text : texts) message.insert(message.end(), text.begin(), text.end());
    return message;
}

/// Rows, or the reason why there are none: the leader waits for either.
std::vector<char> answer(PointRunner& runner, const FilesRead& files, std::uint64_t first,
                         std::uint64_t count) {
    try {
        const Rows rows = runner.run(first, count);
        const std::string digests = files.digests().dump();
        return packed({rows.points, rows.errors, rows.csv.size(), digests.size()},
                      {rows.csv, digests, rows.jsonl});
    } catch (const std::exception& error) {
        return packed({not_run, 0, 0, 0}, {error.what()});
    }
}

Rows unpacked(const std::vector<char>& message) {
    Head head{};
    std::memcpy(head.data(), message.data(), sizeof head);
    const char *csv = message.data() + sizeof head, *digests = csv + head[2], *jsonl = digests + head[3],
               *end = message.data() + message.size();
    if (head[0] == not_run) throw UserError("a process of the cluster failed: " + std::string(csv, end));
    return {{csv, digests}, {jsonl, end}, head[0], head[1], Json::parse(digests, jsonl)};
}

bool arrived(int rank, int tag, MPI_Status& status) {
    int there = 0;
    MPI_Iprobe(rank, tag, MPI_COMM_WORLD, &there, &status);
    return there != 0;
}

}  // namespace

Cluster::Cluster() {
    if (!started_with_others()) return;
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &processes_);
}

Cluster::~Cluster() {
    int started = 0;
    MPI_Initialized(&started);
    if (started == 0) return;
    if (!shared_) shared_text();  // the other processes wait for it
    MPI_Finalize();
}

std::string Cluster::shared_text(const std::string& text) {
    shared_ = true;
    return processes_ == 1 ? text : broadcast(text, 0);
}

std::string Cluster::objection(const std::string& mine) const {
    if (processes_ == 1) return mine;
    int first = mine.empty() ? processes_ : rank_;  // the lowest rank that objects
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == processes_) return "";
    std::string text = mine;
    if (rank_ > 0) {
        std::array<char, MPI_MAX_PROCESSOR_NAME> host{};
        int length = 0;
        MPI_Get_processor_name(host.data(), &length);
        text += " (process " + std::to_string(rank_) + ", on " + std::string(host.data()) + ")";
    }
    return broadcast(text, first);
}

/// The text of process `from` in all processes.
std::string Cluster::broadcast(std::string text, int from) {
    std::uint64_t size = text.size();
    MPI_Bcast(&size, 1, MPI_UINT64_T, from, MPI_COMM_WORLD);
    text.resize(size);
    MPI_Bcast(text.data(), static_cast<int>(size), MPI_CHAR, from, MPI_COMM_WORLD);
    return text;
}

void Cluster::serve(PointRunner& runner, const FilesRead& files) {
    // A node runs a process for each of its cores, so each process keeps to one.
    const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
    for (;;) {
        MPI_Status status;
        while (!arrived(0, work, status)) std::this_thread::sleep_for(between_looks);
        std::array<std::uint64_t, 2> range{};
        MPI_Recv(range.data(), 2, MPI_UINT64_T, 0, work, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (range[1] == 0) return;
        const std::vector<char> message = answer(runner, files, range[0], range[1]);
        MPI_Send(message.data(), static_cast<int>(message.size()), MPI_CHAR, 0, rows, MPI_COMM_WORLD);
    }
}

ClusterWorkers::ClusterWorkers(const Cluster& cluster, const DesignSpace& space, SharedParts& shared)
    : processes_(cluster.processes()), own_(space, shared), running_(static_cast<std::size_t>(processes_)) {
    for (int rank = 0; rank < processes_; ++rank) idle_.push(rank);
}

ClusterWorkers::~ClusterWorkers() {
    const std::array<std::uint64_t, 2> nothing{};
    for (int rank = 1; rank < processes_; ++rank)
        MPI_Send(nothing.data(), 2, MPI_UINT64_T, rank, work, MPI_COMM_WORLD);
}

Rows ClusterWorkers::run(std::uint64_t first, std::uint64_t count) {
    int rank = 0;
    idle_.pop(rank);
    Rows result;
    if (rank == 0) {
        result = own_.run(first, count);
    } else {
        auto request = std::make_shared<Request>(Request{{first, count}, {}});
        std::future<Rows> answer = request->rows.get_future();
        requests_.push({rank, std::move(request)});
        result = answer.get();
    }
    idle_.push(rank);
    return result;
}

bool ClusterWorkers::send_requests() {
    bool any = false;
    for (std::pair<int, std::shared_ptr<Request>> next; requests_.try_pop(next); any = true) {
        MPI_Send(next.second->range, 2, MPI_UINT64_T, next.first, work, MPI_COMM_WORLD);
        running_[static_cast<std::size_t>(next.first)] = std::move(next.second);
    }
    return any;
}

bool ClusterWorkers::receive_rows() {
    MPI_Status status;
    if (!arrived(MPI_ANY_SOURCE, rows, status)) return false;
    int size = 0;
    MPI_Get_count(&status, MPI_CHAR, &size);
    std::vector<char> message(static_cast<std::size_t>(size));
    MPI_Recv(message.data(), size, MPI_CHAR, status.MPI_SOURCE, rows, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const auto request = std::exchange(running_[static_cast<std::size_t>(status.MPI_SOURCE)], nullptr);
    try {
        request->rows.set_value(unpacked(message));
    } catch (...) {
        request->rows.set_exception(std::current_exception());
    }
    return true;
}

void ClusterWorkers::exchange(const std::future<void>& done) {
    bool busy = true;
    while (done.wait_for(busy ? std::chrono::microseconds(0) : between_looks) != std::future_status::ready) {
        busy = send_requests();
        busy = receive_rows() || busy;
    }
}

}  // namespace overlap
