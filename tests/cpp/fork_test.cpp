#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "vkml/core/fork_mutex.h"

namespace vkml {
namespace {

/// Status 0 if the child could take every lock twice.
template <class... Mutexes>
int child_takes(Mutexes&... mutexes) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);  // a hang ends as a failure
        for (int round = 0; round < 2; round++) (std::lock_guard(mutexes), ...);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

TEST(ForkMutex, ChildFindsItFreeAndWhatItGuardsWhole) {
    ForkMutex first, second;
    ForkSafe<std::recursive_mutex> recursive;
    int a = 0, b = 0;
    std::atomic<bool> stop{false};
    const auto work = [&](bool forward) {
        while (!stop) {
            std::lock_guard outer(recursive);
            if (forward) {
                std::lock_guard one(first);
                a++;
                std::lock_guard two(second);
                b++;
            } else {
                std::lock_guard two(second);
                auto made = std::make_unique<ForkMutex>();  // comes and goes while others are held
                std::lock_guard inner(*made);
            }
        }
    };
    std::thread one(work, true), two(work, false);
    for (int i = 0; i < 50; i++) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            std::lock_guard outer(recursive);
            std::lock_guard again(recursive);
            std::lock_guard inner(first);
            _exit(a == b ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        ASSERT_EQ(status, 0) << "fork " << i;
    }
    stop = true;
    one.join();
    two.join();
}

TEST(ForkMutex, OneThatIsHeldWhilePythonRunsIsNotWaitedFor) {
    ForkSafe<std::mutex, false> turn;
    ForkMutex other;
    turn.lock();
    EXPECT_EQ(child_takes(turn, other), 0);
    EXPECT_FALSE(turn.try_lock());  // the parent's is as it was
    turn.unlock();
}

}  // namespace
}  // namespace vkml
