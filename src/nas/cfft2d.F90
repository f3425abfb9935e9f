! CFFT2D: complex Fourier transform of both dimensions, radix 2, without bit reversal (Stockham's order); w(k) = exp(-2 pi i k / N2).
#include "sizes.h"

! All transforms of a dimension at once: long vectors, those of the first dimension with a stride of a power of two.
subroutine cfft2d_unchanged(x, y, w) bind(c, name='cfft2d_unchanged_'//SET)
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: n1 = CFFT2D_N1, n2 = CFFT2D_N2
  complex(c_double), intent(inout) :: x(0:n1 - 1, 0:n2 - 1), y(0:n1 - 1, 0:n2 - 1)
  complex(c_double), intent(in) :: w(0:n2 - 1)
  integer :: half, together, i, j, k
  half = n1/2
  together = 1
  do while (half > 0)
    do j = 0, half - 1
      do k = 0, together - 1
        do i = 0, n2 - 1
          y(k + 2*j*together, i) = x(k + j*together, i) + x(k + (j + half)*together, i)
          y(k + (2*j + 1)*together, i) = w(j*(n2/(2*half)))*(x(k + j*together, i) - x(k + (j + half)*together, i))
        end do
      end do
    end do
    x = y
    half = half/2
    together = 2*together
  end do
  half = n2/2
  together = 1
  do while (half > 0)
    do j = 0, half - 1
      do k = 0, together - 1
        do i = 0, n1 - 1
          y(i, k + 2*j*together) = x(i, k + j*together) + x(i, k + (j + half)*together)
          y(i, k + (2*j + 1)*together) = w(j*(n2/(2*half)))*(x(i, k + j*together) - x(i, k + (j + half)*together))
        end do
      end do
    end do
    x = y
    half = half/2
    together = 2*together
  end do
end subroutine cfft2d_unchanged

! A few transforms at a time, side by side in a buffer that stays in the first-level cache.
subroutine cfft2d_optimised(x, y, w) bind(c, name='cfft2d_optimised_'//SET)
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: n1 = CFFT2D_N1, n2 = CFFT2D_N2, strip = 4
  complex(c_double), intent(inout) :: x(0:n1 - 1, 0:n2 - 1), y(0:n1 - 1, 0:n2 - 1)
  complex(c_double), intent(in) :: w(0:n2 - 1)
  complex(c_double) :: one(strip, 0:n2 - 1), other(strip, 0:n2 - 1)
  integer :: first, i, k
  do first = 0, n2 - strip, strip
    do i = 1, strip
      do k = 0, n1 - 1
        one(i, k) = x(k, first + i - 1)
      end do
    end do
    call transform(n1)
    do i = 1, strip
      do k = 0, n1 - 1
        x(k, first + i - 1) = one(i, k)
      end do
    end do
  end do
  do first = 0, n1 - strip, strip
    do k = 0, n2 - 1
      do i = 1, strip
        one(i, k) = x(first + i - 1, k)
      end do
    end do
    call transform(n2)
    do k = 0, n2 - 1
      do i = 1, strip
        x(first + i - 1, k) = one(i, k)
      end do
    end do
  end do
contains
  subroutine transform(n)
    integer, intent(in) :: n
    integer :: half, together
    half = n/2
    together = 1
    do while (half > 0)
      call step(one, other, half, together)
      half = half/2
      together = 2*together
      if (half == 0) then
        one = other
        return
      end if
      call step(other, one, half, together)
      half = half/2
      together = 2*together
    end do
  end subroutine transform

  subroutine step(from, to, half, together)
    complex(c_double), intent(in) :: from(strip, 0:n2 - 1)
    complex(c_double), intent(out) :: to(strip, 0:n2 - 1)
    integer, intent(in) :: half, together
    complex(c_double) :: turn
    integer :: i, j, k
    do j = 0, half - 1
      turn = w(j*(n2/(2*half)))
      do k = 0, together - 1
        do i = 1, strip
          to(i, k + 2*j*together) = from(i, k + j*together) + from(i, k + (j + half)*together)
          to(i, k + (2*j + 1)*together) = turn*(from(i, k + j*together) - from(i, k + (j + half)*together))
        end do
      end do
    end do
  end subroutine step
end subroutine cfft2d_optimised
