! The triad as a Fortran programmer writes it; compiled by the environment's Fortran compiler.
module triad_in_fortran
  use, intrinsic :: iso_c_binding, only: c_size_t, c_double, c_long, c_ptr, c_null_ptr, c_loc, c_associated
  implicit none

  integer, parameter :: line = 8, block_option = 2      ! doubles of a cache line; TRIAD_BLOCK + 1

  ! Arrays of --alloc allocate: some sets of four.
  type :: held
    real(c_double), allocatable :: x(:)
  end type held
  type(held), target, save :: arrays(64)
  real(c_double), volatile, save :: used
contains

  subroutine triad_fortran(n, a, b, c, d, parameters) bind(c)
    integer(c_size_t), intent(in), value :: n
    real(c_double), intent(inout) :: a(n)
    real(c_double), intent(in) :: b(n), c(n), d(n)
    type(c_ptr), intent(in), value :: parameters
    a(:) = b(:) + c(:)*d(:)
  end subroutine triad_fortran

  ! The same, a block of B, of C and of D loaded first, one word of each line (hager2004, section 3.2).
  subroutine triad_preload_fortran(n, a, b, c, d, parameters) bind(c)
    integer(c_size_t), intent(in), value :: n
    real(c_double), intent(inout) :: a(n)
    real(c_double), intent(in) :: b(n), c(n), d(n)
    integer(c_long), intent(in) :: parameters(*)
    integer(c_size_t) :: first, last, block
    block = parameters(block_option)
    do first = 1, n, block
      last = min(n, first + block - 1)
      used = sum(b(first:last:line)) + sum(c(first:last:line)) + sum(d(first:last:line))
      a(first:last) = b(first:last) + c(first:last)*d(first:last)
    end do
  end subroutine triad_preload_fortran

  function fortran_allocate(doubles) result(at) bind(c)
    integer(c_size_t), intent(in), value :: doubles
    type(c_ptr) :: at
    integer :: i, failed
    at = c_null_ptr
    do i = 1, size(arrays)
      if (.not. allocated(arrays(i)%x)) then
        allocate(arrays(i)%x(doubles), stat=failed)
        if (failed == 0) at = c_loc(arrays(i)%x)
        return
      end if
    end do
  end function fortran_allocate

  subroutine fortran_deallocate(at) bind(c)
    type(c_ptr), intent(in), value :: at
    integer :: i
    do i = 1, size(arrays)
      if (allocated(arrays(i)%x)) then
        if (c_associated(at, c_loc(arrays(i)%x))) deallocate(arrays(i)%x)
      end if
    end do
  end subroutine fortran_deallocate

end module triad_in_fortran
